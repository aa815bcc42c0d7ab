"use strict";
// Every series: search, order, choose, overlay. Series of one unit share a chart; each unit has its own.

const OVERLAY_MAX = 8;
const ORDERS = {
  spread: "what varies most",
  max: "highest value",
  p95: "95th percentile",
  median: "median",
  mean: "mean",
  name: "name",
};

class Browser {
  constructor(root, store, page) {
    this.root = root;
    this.store = store;
    this.page = page;
    this.chosen = [];
    this.find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.prepare();
    this.fill();
    for (const role of ["metric", "kind", "order", "top"]) this.find(role).addEventListener("change", () => this.list());
    this.find("search").addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.list(), 120);
    });
    this.find("overlay-top").addEventListener("click", () => this.overlay(this.listed.slice(0, OVERLAY_MAX)));
    this.find("clear").addEventListener("click", () => this.overlay([]));
    root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    this.start();
  }

  prepare() {
    const { metrics, entities, columns } = this.store.catalogue;
    const metricText = metrics.map(([name, , , meaning]) => `${name} ${meaning}`.toLowerCase());
    const entityText = entities.map(([, full]) => full.toLowerCase());
    this.text = (i) => `${entityText[columns.entity[i]]} ${metricText[columns.metric[i]]}`;
  }

  fill() {
    const { metrics, entities } = this.store.catalogue;
    const byLayer = new Map();
    metrics.forEach(([name, , layer], number) => {
      if (!byLayer.has(layer)) byLayer.set(layer, []);
      byLayer.get(layer).push([name, number]);
    });
    for (const [layer, own] of byLayer) {
      const group = el("optgroup", { label: layer });
      own.sort((a, b) => (a[0] < b[0] ? -1 : 1));
      for (const [name, number] of own) group.append(el("option", { value: String(number) }, name));
      this.find("metric").append(group);
    }
    for (const kind of [...new Set(entities.map(([, , kind]) => kind))].sort()) {
      this.find("kind").append(el("option", { value: kind }, kind));
    }
    for (const [value, text] of Object.entries(ORDERS)) this.find("order").append(el("option", { value }, text));
  }

  // What the first finding is about, so that there is something to compare with.
  start() {
    const { metrics, entities, columns } = this.store.catalogue;
    const first = this.page.first.map(([metric, entity, source]) => {
      const at = [metrics.findIndex(([name]) => name === metric), entities.findIndex(([, full]) => full === entity)];
      return columns.metric.findIndex((m, i) => m === at[0] && columns.entity[i] === at[1] && columns.source[i] === source);
    });
    const found = first.filter((i) => i >= 0);
    const leading = found.reduce((a, b) => ((columns.max[b] ?? 0) > (columns.max[a] ?? 0) ? b : a), found[0]);
    if (leading !== undefined) {
      this.find("metric").value = String(columns.metric[leading]);
      this.find("order").value = "p95";
    }
    this.list();
    this.overlay(found.length ? found.slice(0, OVERLAY_MAX) : this.listed.slice(0, 1));
  }

  matching() {
    const { columns, entities } = this.store.catalogue;
    const words = this.find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const metric = this.find("metric").value;
    const kind = this.find("kind").value;
    const found = [];
    for (let i = 0; i < this.store.size; i++) {
      if (metric !== "" && columns.metric[i] !== Number(metric)) continue;
      if (kind !== "" && entities[columns.entity[i]][2] !== kind) continue;
      if (words.length) {
        const text = this.text(i);
        if (!words.every((word) => text.includes(word))) continue;
      }
      found.push(i);
    }
    return found;
  }

  list() {
    const order = this.find("order").value;
    const { columns } = this.store.catalogue;
    const found = this.matching();
    if (order === "name") {
      const names = new Map(found.map((i) => [i, this.text(i)]));
      found.sort((a, b) => (names.get(a) < names.get(b) ? -1 : 1));
    } else {
      found.sort((a, b) => (columns[order][b] ?? -Infinity) - (columns[order][a] ?? -Infinity) || a - b);
    }
    this.listed = found;
    const top = Number(this.find("top").value);
    const metric = this.find("metric").value;
    this.find("meaning").textContent = metric === "" ? "" : this.store.catalogue.metrics[Number(metric)][3];
    this.find("count").textContent =
      `${found.length.toLocaleString("en-US")} series match` + (found.length > top ? `, the first ${top} are listed` : "");
    this.find("rows").replaceChildren(...found.slice(0, top).map((i) => this.row(i)));
  }

  row(i) {
    const { label, full } = this.store.entity(i);
    const { name, unit, meaning } = this.store.metric(i);
    const { columns } = this.store.catalogue;
    const box = el("input", { type: "checkbox", "aria-label": `Draw ${label} ${name}` });
    box.checked = this.chosen.includes(i);
    box.dataset.series = i;
    box.addEventListener("change", () => this.toggle(i, box));
    const source = this.page.sources[columns.source[i]] || "";
    const row = el("tr", {}, el("td", {}, box));
    row.append(el("th", { scope: "row", title: full }, label), el("td", { title: meaning }, name));
    for (const column of ["median", "p95", "max"]) {
      row.append(el("td", { class: "number" }, shown(columns[column][i], unit)));
    }
    row.append(el("td", { class: "source", title: source }, source.split("/").pop()));
    return row;
  }

  toggle(i, box) {
    const next = box.checked ? [...this.chosen, i] : this.chosen.filter((other) => other !== i);
    if (next.length > OVERLAY_MAX) {
      box.checked = false;
      this.find("note").textContent = `${OVERLAY_MAX} series can be overlaid; take one away first.`;
      return;
    }
    this.overlay(next);
  }

  async overlay(chosen) {
    this.chosen = chosen;
    this.find("note").textContent = chosen.length ? "" : "Choose series below to draw them over each other.";
    for (const box of this.find("rows").querySelectorAll("input")) {
      box.checked = chosen.includes(Number(box.dataset.series));
    }
    const read = await Promise.all(chosen.map((i) => this.store.read(i)));
    if (this.chosen !== chosen) return; // chosen anew while this was read
    const panels = new Map();
    const several = new Set(chosen.map((i) => this.store.columns.metric[i])).size > 1;
    const sourceful = this.repeated(chosen);
    chosen.forEach((i, k) => {
      const { name, unit, meaning } = this.store.metric(i);
      const source = (this.page.sources[this.store.columns.source[i]] || "").split("/").pop();
      const label = `${this.store.entity(i).label}${several ? ` ${name}` : ""}${sourceful ? ` (${source})` : ""}`;
      if (!panels.has(unit)) panels.set(unit, { unit, title: several ? "chosen series" : meaning, lines: [] });
      panels.get(unit).lines.push({ label, ...read[k] });
    });
    this.find("panels").replaceChildren(...[...panels.values()].map((panel) => this.panel(panel)));
    for (const draw of this.pending.splice(0)) draw();
  }

  repeated(chosen) {
    const names = chosen.map((i) => `${this.store.columns.entity[i]} ${this.store.columns.metric[i]}`);
    return new Set(names).size < names.length;
  }

  pending = [];

  panel({ unit, title, lines }) {
    const host = el("div", { class: "chart" });
    const numbers = el("details", {}, el("summary", {}, "Numbers"));
    numbers.addEventListener("toggle", () => {
      if (numbers.open && numbers.children.length === 1) numbers.append(numbersTable(lines, unit));
    });
    const spec = { title, unit, lines, limits: [], windows: [], incidents: this.page.incidents, span: this.page.span_ms };
    this.pending.push(() => new Chart(host, spec)); // drawn once it is in the page and has a width
    return el("figure", {}, host, numbers);
  }
}
