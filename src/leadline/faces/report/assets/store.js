"use strict";
// Reads the packs that packing.py writes: a catalogue, and blocks that are inflated when a series in them is drawn.

const BLOCKS_HELD = 12; // inflated blocks kept; another is inflated again, which costs a few milliseconds

async function inflate(id) {
  const text = document.getElementById(id).textContent;
  let bytes;
  if (Uint8Array.fromBase64) {
    bytes = Uint8Array.fromBase64(text);
  } else {
    const raw = atob(text);
    bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A 16-bit float: sign, 5 bits of exponent, 10 of fraction.
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
}

class Store {
  constructor(prefix) {
    this.prefix = prefix;
    this.blocks = new Map();
    this.moments = new Map();
  }

  async open() {
    const bytes = await inflate(`${this.prefix}-catalogue`);
    this.catalogue = JSON.parse(new TextDecoder().decode(bytes));
    const { columns, vectors, block_series: width } = this.catalogue;
    this.columns = columns;
    this.size = columns.metric.length;
    this.pointAt = new Uint32Array(this.size);
    this.stepAt = new Uint32Array(this.size);
    this.totals = [];
    for (let i = 0, points = 0, steps = 0; i < this.size; i++) {
      if (i % width === 0) points = steps = 0;
      this.pointAt[i] = points;
      this.stepAt[i] = steps;
      points += columns.count[i];
      if (!this.isWhole(i)) steps += columns.count[i];
      this.totals[Math.floor(i / width)] = [points, steps];
    }
    this.vectorAt = [];
    this.tickCount = 0;
    for (const length of vectors) {
      this.vectorAt.push(this.tickCount);
      this.tickCount += length;
    }
    return this;
  }

  isWhole(i) {
    return this.columns.count[i] === this.catalogue.vectors[this.columns.times[i]];
  }

  metric(i) {
    const [name, unit, layer, meaning] = this.catalogue.metrics[this.columns.metric[i]];
    return { name, unit, layer, meaning };
  }

  entity(i) {
    const [label, full, kind] = this.catalogue.entities[this.columns.entity[i]];
    return { label, full, kind };
  }

  // Times in milliseconds since 1970 (UTC) and values; NaN is "not measured".
  async read(i) {
    const number = Math.floor(i / this.catalogue.block_series);
    const [bytes, moments] = await Promise.all([this.block(number), this.vector(this.columns.times[i])]);
    const [points, steps] = this.totals[number];
    const count = this.columns.count[i];
    const scale = 2 ** this.columns.exponent[i];
    const times = new Float64Array(count);
    const values = new Float64Array(count);
    const low = this.pointAt[i];
    const stepLow = 2 * points + this.stepAt[i];
    const whole = this.isWhole(i);
    for (let k = 0, at = 0; k < count; k++) {
      values[k] = half(bytes[low + k] | (bytes[points + low + k] << 8)) * scale;
      at = whole ? k : at + (bytes[stepLow + k] | (bytes[steps + stepLow + k] << 8));
      times[k] = moments[at];
    }
    return { times, values };
  }

  async block(number) {
    let held = this.blocks.get(number);
    if (!held) held = inflate(`${this.prefix}-block-${number}`);
    this.blocks.delete(number);
    this.blocks.set(number, held); // last used, last in order
    if (this.blocks.size > BLOCKS_HELD) this.blocks.delete(this.blocks.keys().next().value);
    return held;
  }

  async vector(number) {
    if (!this.ticks) this.ticks = inflate(`${this.prefix}-times`);
    const bytes = await this.ticks;
    let moments = this.moments.get(number);
    if (!moments) {
      const { origin_ms: origin, tick_ms: tick, vectors } = this.catalogue;
      moments = new Float64Array(vectors[number]);
      for (let k = 0, at = this.vectorAt[number], ticks = 0; k < moments.length; k++, at++) {
        for (let plane = 0; plane < 4; plane++) ticks += bytes[plane * this.tickCount + at] * 2 ** (8 * plane);
        moments[k] = origin + ticks * tick;
      }
      this.moments.set(number, moments);
    }
    return moments;
  }
}
