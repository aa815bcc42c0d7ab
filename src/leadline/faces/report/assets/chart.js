"use strict";
// A line chart as SVG: limits dashed, windows shaded, a cursor for mouse and keyboard, its numbers as a table.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { top: 14, right: 14, bottom: 22 };
const CHART_HEIGHT = 220;
const ROWS_SHOWN = 500;
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800];

function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function svg(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

// Three significant digits and the unit, as everywhere in Leadline.
function shown(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const number = Math.abs(value) >= 100
    ? Math.round(value).toLocaleString("en-US")
    : String(Number(value.toPrecision(3)));
  return unit === "" || unit.startsWith("/") ? number + unit : `${number} ${unit}`;
}

function clock(ms, withDay) {
  const text = new Date(ms).toISOString();
  return withDay ? `${text.slice(0, 10)} ${text.slice(11, 19)}` : text.slice(11, 19);
}

function tickStep(span, count) {
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= rough) || power;
}

function timeTicks([start, end], count) {
  const step = (STEPS_S.find((s) => (end - start) / 1000 / s <= count) || 604800) * 1000;
  const ticks = [];
  for (let t = Math.ceil(start / step) * step; t <= end; t += step) ticks.push(t);
  return ticks.map((t) => {
    const text = new Date(t).toISOString();
    return [t, step >= 86400000 ? text.slice(5, 10) : step < 60000 ? text.slice(11, 19) : text.slice(11, 16)];
  });
}

function path(line, x, y) {
  let text = "";
  let pen = false;
  for (let i = 0; i < line.times.length; i++) {
    const value = line.values[i];
    if (Number.isNaN(value)) {
      pen = false;
      continue;
    }
    const alone = !pen && (i + 1 >= line.values.length || Number.isNaN(line.values[i + 1]));
    text += `${pen ? "L" : "M"}${x(line.times[i]).toFixed(1)} ${y(value).toFixed(1)}${alone ? "h.01" : ""}`;
    pen = true;
  }
  return text;
}

class Chart {
  // spec: { title, unit, lines: [{ label, times, values }], limits: [[value, label]], windows: [[start, end]], incidents: [[start, end]], span, logarithmic, left }
  constructor(host, spec) {
    this.host = host;
    this.spec = spec;
    this.withDay = clock(spec.span[0], true).slice(0, 10) !== clock(spec.span[1], true).slice(0, 10);
    this.plot = el("div", { class: "plot", tabindex: "0", role: "img", "aria-label": this.description() });
    this.legend = el("ul", { class: "legend" });
    this.readout = el("p", { class: "visually-hidden", "aria-live": "polite" });
    host.replaceChildren(this.plot, this.legend, this.readout);
    this.labels = spec.lines.map((line, i) => {
      const value = el("span", { class: "value" });
      this.legend.append(el("li", { class: `s${i % 8}` }, el("i", {}), line.label, value));
      return value;
    });
    this.moment = el("li", { class: "moment" });
    this.legend.append(this.moment);
    this.plot.addEventListener("pointermove", (event) => this.point(event));
    this.plot.addEventListener("pointerleave", () => this.cursor(null));
    this.plot.addEventListener("blur", () => this.cursor(null));
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.draw();
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.plot);
  }

  description() {
    const { title, unit, lines, limits } = this.spec;
    const parts = lines.map((line) => {
      const known = line.values.filter((v) => !Number.isNaN(v));
      let low = Infinity;
      let high = -Infinity;
      for (const v of known) {
        if (v < low) low = v;
        if (v > high) high = v;
      }
      return `${line.label} from ${shown(low, unit)} to ${shown(high, unit)}`;
    });
    const levels = limits.map(([, label]) => label);
    return `Chart of ${title}: ${[...parts, ...levels].join("; ")}. Arrow keys read the values; the table follows.`;
  }

  scales() {
    const { lines, limits, span, unit } = this.spec;
    let low = 0;
    let high = 0;
    for (const line of lines) {
      for (const value of line.values) {
        if (value > high) high = value;
        if (value < low) low = value;
      }
    }
    for (const [value] of limits) high = Math.max(high, value * 1.08);
    if (high === low) high = low + 1;
    const levels = [];
    if (this.spec.logarithmic) {
      high = 10 ** Math.ceil(Math.log10(high) - 1e-9);
      low = Math.min(Math.max(this.lowest(), high / 1e5), high / 10);
      for (let v = low; v <= high * 1.001; v *= 10) levels.push(v);
    } else {
      const step = tickStep(high - low, 4);
      high = Math.ceil(high / step - 1e-9) * step;
      low = Math.floor(low / step + 1e-9) * step;
      for (let v = low; v <= high + step / 2; v += step) levels.push(Math.abs(v) < step / 1e6 ? 0 : v);
    }
    this.left = Math.max(16 + 6.9 * Math.max(...levels.map((v) => shown(v, unit).length)), this.spec.left ?? 0);
    const inner = this.width - this.left - MARGIN.right;
    const tall = CHART_HEIGHT - MARGIN.top - MARGIN.bottom;
    const length = Math.max(span[1] - span[0], 1);
    this.x = (t) => this.left + ((t - span[0]) / length) * inner;
    const scale = this.spec.logarithmic ? (v) => Math.log10(Math.max(v, low)) : (v) => v;
    this.y = (v) => MARGIN.top + (1 - (scale(v) - scale(low)) / (scale(high) - scale(low))) * tall;
    this.time = (px) => span[0] + ((px - this.left) / inner) * length;
    return levels;
  }

  // The power of ten below everything above 0.
  lowest() {
    let low = Infinity;
    for (const line of this.spec.lines) for (const v of line.values) if (v > 0 && v < low) low = v;
    for (const [value] of this.spec.limits) if (value > 0) low = Math.min(low, value);
    return 10 ** Math.floor(Math.log10(low));
  }

  draw() {
    const width = Math.max(Math.round(this.plot.clientWidth), 280);
    if (width === this.width) return;
    this.width = width;
    const { lines, limits, windows, incidents, unit, span, logarithmic } = this.spec;
    const levels = this.scales();
    const right = width - MARGIN.right;
    const bottom = CHART_HEIGHT - MARGIN.bottom;
    const root = svg("svg", { viewBox: `0 0 ${width} ${CHART_HEIGHT}`, width: "100%", "aria-hidden": "true" });
    for (const [name, spans] of [["incident", incidents], ["window", windows]]) {
      for (const [start, end] of spans) {
        const from = Math.max(this.x(start), this.left);
        const to = Math.min(this.x(end), right);
        const height = bottom - MARGIN.top;
        if (to > from) root.append(svg("rect", { class: name, x: from, y: MARGIN.top, width: to - from, height }));
      }
    }
    for (const level of levels) {
      const y = this.y(level);
      root.append(svg("line", { class: "grid", x1: this.left, x2: right, y1: y, y2: y }));
      const label = svg("text", { class: "tick", x: this.left - 7, y: y + 4, "text-anchor": "end" });
      label.textContent = (logarithmic && level === levels[0] ? "≤ " : "") + shown(level, unit);
      root.append(label);
    }
    for (const [t, label] of timeTicks(span, Math.max(2, Math.floor(width / 110)))) {
      const x = this.x(t);
      root.append(svg("line", { class: "grid", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
      const anchor = x > right - 24 ? "end" : x < this.left + 24 ? "start" : "middle";
      root.append(svg("text", { class: "tick", x, y: bottom + 17, "text-anchor": anchor }, label));
    }
    lines.forEach((line, i) => root.append(svg("path", { class: `line s${i % 8}`, d: path(line, this.x, this.y) })));
    for (const [value, label] of limits) {
      const y = this.y(value);
      root.append(svg("line", { class: "limit", x1: this.left, x2: right, y1: y, y2: y }));
      const above = y > MARGIN.top + 16;
      const place = { class: "limit-label", x: right - 4, y: above ? y - 5 : y + 14, "text-anchor": "end" };
      root.append(svg("text", place, label));
    }
    this.rule = svg("line", { class: "cursor", y1: MARGIN.top, y2: bottom, visibility: "hidden" });
    root.append(this.rule);
    this.plot.replaceChildren(root);
    this.legend.style.paddingLeft = `${this.left}px`;
  }

  point(event) {
    const box = this.plot.getBoundingClientRect();
    this.cursor(this.time(((event.clientX - box.left) / box.width) * this.width));
  }

  key(event) {
    const { span } = this.spec;
    const step = (span[1] - span[0]) / 60;
    const at = this.at ?? span[0];
    const moves = { ArrowLeft: at - step, ArrowRight: at + step, Home: span[0], End: span[1] };
    if (event.key === "Escape") this.cursor(null);
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.cursor(Math.min(Math.max(moves[event.key], span[0]), span[1]));
    this.readout.textContent = this.legend.textContent;
  }

  cursor(time) {
    const { span, lines, unit } = this.spec;
    this.at = time;
    const out = time === null || time < span[0] || time > span[1];
    this.rule.setAttribute("visibility", out ? "hidden" : "visible");
    this.moment.textContent = out ? "" : `${clock(time, this.withDay)} UTC`;
    if (!out) {
      this.rule.setAttribute("x1", this.x(time));
      this.rule.setAttribute("x2", this.x(time));
    }
    lines.forEach((line, i) => {
      this.labels[i].textContent = out ? "" : ` ${shown(line.values[nearest(line.times, time)], unit)}`;
    });
  }
}

function nearest(times, time) {
  let low = 0;
  let high = times.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle;
    else high = middle;
  }
  return high >= 0 && time - times[low] > times[high] - time ? high : low;
}

// The numbers of a chart, made when somebody opens them; a long table is continued on request.
function numbersTable(lines, unit) {
  const rows = new Map();
  lines.forEach((line, i) => {
    line.times.forEach((t, k) => {
      if (!rows.has(t)) rows.set(t, new Array(lines.length).fill(undefined));
      rows.get(t)[i] = line.values[k];
    });
  });
  const times = [...rows.keys()].sort((a, b) => a - b);
  const head = el("tr", {}, el("th", { scope: "col" }, "time (UTC)"));
  for (const line of lines) head.append(el("th", { scope: "col", class: "number" }, line.label));
  const body = el("tbody");
  const table = el("table", {}, el("thead", {}, head), body);
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the chart" }, table);
  const more = el("button", { type: "button" });
  let at = 0;
  const add = () => {
    for (const t of times.slice(at, at + ROWS_SHOWN)) {
      const row = el("tr", {}, el("th", { scope: "row" }, clock(t, true)));
      for (const value of rows.get(t)) {
        const text = value === undefined ? "" : Number.isNaN(value) ? "not measured" : shown(value, unit);
        row.append(el("td", { class: "number" }, text));
      }
      body.append(row);
    }
    at += ROWS_SHOWN;
    more.hidden = at >= times.length;
    more.textContent = `Show ${Math.min(ROWS_SHOWN, times.length - at)} more of ${times.length.toLocaleString("en-US")}`;
  };
  more.addEventListener("click", add);
  add();
  return el("div", {}, box, more);
}
