// Keeps the page as the watch is: the server says that something changed, and the part of this page is fetched again.
"use strict";
(() => {
  const main = document.getElementById("main");
  const note = document.getElementById("connection");
  const LEAST_MS = 1000;
  let shownAt = new Date();
  let isFetching = false;
  let isDue = false;
  let known = "";

  const say = (text) => {
    note.textContent = text;
    note.hidden = text === "";
  };

  // Whoever fills in a form or copies a command is not interrupted.
  const isInUse = () => {
    const active = document.activeElement;
    if (active !== null && main.contains(active) && active.closest("form") !== null) return true;
    const selection = getSelection();
    return selection !== null && !selection.isCollapsed && main.contains(selection.anchorNode);
  };

  const put = (html) => {
    const open = [...main.querySelectorAll("details[open][id]")].map((one) => one.id);
    const focused = document.activeElement?.closest("main a")?.getAttribute("href");
    main.innerHTML = html;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) main.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    document.documentElement.dataset.updates = String(Number(document.documentElement.dataset.updates ?? 0) + 1);
  };

  const update = async () => {
    if (isFetching) {
      isDue = true;
      return;
    }
    isFetching = true;
    isDue = false;
    try {
      const answer = await fetch(location.href, { headers: { "X-Leadline-Fragment": "1" }, cache: "no-store" });
      if (answer.ok && !isInUse()) {
        put(await answer.text());
        shownAt = new Date();
      }
      say(answer.ok ? "" : `The watch refused this page (${answer.status}). Load it again.`);
    } catch {
      lost();
    }
    setTimeout(() => {
      isFetching = false;
      if (isDue) update();
    }, LEAST_MS);
  };

  const lost = () => say(`The watch does not answer. What you see is of ${shownAt.toISOString().slice(11, 19)} UTC.`);

  const events = new EventSource("/events");
  events.addEventListener("change", (event) => {
    const version = JSON.parse(event.data).version;
    if (known !== "" && version !== known) update();
    known = version;
  });
  events.addEventListener("open", () => {
    if (!note.hidden) update();
    document.documentElement.dataset.live = "";
  });
  events.addEventListener("error", lost);
  addEventListener("pagehide", () => events.close());
})();
