"use strict";
// Starts the page: theme, the findings' charts, then, when there is time, the browser of all series.

function themes() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  if (!button) return; // a page of charts alone, in a notebook
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const say = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    say();
  });
  say();
  const print = document.getElementById("print");
  print.hidden = false;
  print.addEventListener("click", () => window.print());
}

async function drawFindings(page) {
  const store = await new Store("evidence").open();
  for (const host of document.querySelectorAll("[data-chart]")) {
    const { title, labels, lines: numbers, limits, windows, logarithmic, left } = page.charts[Number(host.dataset.chart)];
    if (!numbers.length) continue;
    const { unit } = store.metric(numbers[0]);
    const lines = await Promise.all(numbers.map(async (i, k) => ({ label: labels[k], ...(await store.read(i)) })));
    new Chart(host, { title, unit, lines, limits, windows, logarithmic, left, incidents: page.incidents, span: page.span_ms });
    const numbersBox = host.closest("figure").querySelector("details");
    numbersBox.addEventListener("toggle", () => {
      const place = numbersBox.querySelector("[data-samples]");
      if (numbersBox.open && !place.children.length) place.append(numbersTable(lines, unit));
    });
  }
}

async function openBrowser(page) {
  const root = document.getElementById("browser");
  const store = await new Store("series").open();
  root.querySelector("[data-role=wait]").remove();
  root.querySelector("form").hidden = false;
  window.leadlineBrowser = new Browser(root, store, page);
}

async function start() {
  themes();
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const failed = (error) => {
    for (const place of document.querySelectorAll(".chart, [data-role=wait]")) {
      place.textContent = "This browser is too old to draw the charts; the text and tables are complete.";
    }
    document.documentElement.dataset.failed = String(error);
  };
  try {
    await drawFindings(page);
    performance.mark("leadline-findings");
    await new Promise((resolve) => setTimeout(resolve)); // let the findings be painted first
    if (document.getElementById("browser")) await openBrowser(page);
    performance.mark("leadline-browser");
  } catch (error) {
    failed(error);
  }
  document.documentElement.dataset.ready = "yes";
}

start();
