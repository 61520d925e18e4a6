"use strict";
// One picture: cells on a canvas, drawn from a data element, with a tip, a legend, and parts that can be shown alone.
const Picture = (() => {
  const all = (what, inside = document) => [...inside.querySelectorAll(what)];
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const tip = document.getElementById("tip");

  const HUES = [212, 28, 150, 285, 350, 182, 52, 320];
  const hue = (n) => (n < HUES.length ? HUES[n] : (n * 137.508) % 360);
  const gradient = (h, t) => `hsl(${h} 62% ${38 + 42 * t}%)`;
  const ramp = (t) => `hsl(${262 - 212 * t} ${58 + 14 * t}% ${34 + 32 * t}%)`;
  const index = (flat, shape, scale = []) => {
    const out = [];
    for (let d = shape.length - 1; d >= 0; d--) { out.unshift((flat % shape[d]) * (scale[d] || 1)); flat = Math.floor(flat / shape[d]); }
    return `[${out.join(", ")}]`;
  };
  const number = (n) => n.toLocaleString("en");
  const times = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

  class Picture {
    constructor(figure) {
      this.figure = figure;
      this.d = JSON.parse(document.getElementById(figure.dataset.of).textContent);
      this.canvas = figure.querySelector("canvas");
      this.select = figure.querySelector("select.colour");
      this.said = figure.querySelector(".said");
      this.at = new Map();
      this.elements = [];
      for (let i = 0; i < this.d.cells.length; i += 2)
        for (let n = 0; n < this.d.cells[i + 1]; n++) { this.at.set(this.d.cells[i] + n, this.elements.length); this.elements.push(this.d.cells[i] + n); }
      this.chosen = null;
      this.cursor = null;
      this.range = {};
      for (const key of ["thread", "time", "touches", "threads", "block", "blocks", "register", "copies"]) {
        const field = this.d[key];
        if (field === undefined) continue;
        const values = Array.isArray(field) ? field : [field];
        this.range[key] = [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
      }
      figure.classList.toggle("broad", this.d.columns > 128);
      this.requests();
      this.listen();
      this.lay();
    }

    get(key, i) { const field = this.d[key]; return Array.isArray(field) ? field[i] : field; }
    get mode() {
      if (this.select) return this.select.value;
      return this.d.held !== undefined ? "content" : this.d.block !== undefined ? "block" : this.d.registers ? "register" : "thread";
    }
    length(line) { return Array.isArray(this.d.lengths) ? this.d.lengths[line] : this.d.lengths; }
    total() { return this.d.shape.reduce((a, b) => a * b, 1); }
    element(line, column) {
      if (line < 0 || line >= this.d.starts.length || column < 0 || column >= this.length(line)) return null;
      const e = this.d.starts[line] + column;
      return e < 0 || e >= this.total() ? null : e;
    }
    place(e) {  // indices; of a cell that stands for several elements, those of the first
      return index(e, this.d.shape, this.d.scale);
    }
    coarse() {
      const scale = this.d.scale || [];
      return scale.some((n) => n > 1) ? `, the first of ${scale.slice(-2).join(" x ")}` : "";
    }
    byte(e) { return (this.d.base || 0) + e * this.d.bytes; }
    warp(thread) { return Math.floor(thread / this.d.warp); }
    each(level) { return level === "warp" ? this.d.warp : (this.d.levels || {})[level] || 1; }  // threads of a unit
    isLevel(mode) { return mode === "thread" || mode === "warp" || mode in (this.d.levels || {}); }
    who(thread) { return this.d.block_threads > 1 ? `thread ${thread}: warp ${this.warp(thread)}, lane ${thread % this.d.warp}` : `thread ${thread}`; }

    lane(thread) {  // one warp alone has the whole ramp for its lanes
      const d = this.d;
      if (d.block_threads <= d.warp) return ramp(d.block_threads > 1 ? thread / (d.block_threads - 1) : 0.35);
      return gradient(hue(this.warp(thread)), d.warp > 1 ? (thread % d.warp) / (d.warp - 1) : 0.3);
    }

    colour(i) {
      const mode = this.mode, d = this.d;
      if (mode === "thread") return this.lane(this.get("thread", i));
      if (this.isLevel(mode)) return gradient(hue(Math.floor(this.get("thread", i) / this.each(mode))), 0.35);
      if (mode === "content") {
        const held = this.get("held", i), tensor = d.tensor, width = tensor.shape[tensor.shape.length - 1] || 1;
        const [low, high] = this.width || (this.width = this.spread(width));
        return gradient(hue(Math.floor(held / width) % 12), high > low ? (held % width - low) / (high - low) : 0.3);
      }
      if (mode === "block") {
        const block = this.get("block", i), x = d.grid[0];
        const place = block % x, row = Math.floor(block / x);
        if (x > 12) return gradient(hue((place % 3) + 3 * (row % 4)), (Math.floor(place / 3) % 4) / 4 + 0.1);
        return gradient(hue(row % 8), x > 1 ? place / (x - 1) : 0.35);
      }
      const [low, high] = this.range[mode];
      return ramp(high > low ? (this.get(mode, i) - low) / (high - low) : 0.35);
    }
    block(number) {
      const [x, y, z] = this.d.grid;
      return y * z === 1 ? `block ${number}` : `block (${number % x}, ${Math.floor(number / x) % y}${z > 1 ? `, ${Math.floor(number / x / y)}` : ""})`;
    }
    owner(i) {  // whose cells grow together: the unit that the colours show; null where every cell stands for itself
      const mode = this.mode;
      if (mode === "block") return `${this.get("block", i)} of ${this.get("blocks", i)}`;
      return this.isLevel(mode) ? Math.floor(this.get("thread", i) / this.each(mode)) : null;
    }
    alike(a, b) {
      const i = a === null ? undefined : this.at.get(a), j = b === null ? undefined : this.at.get(b);
      const owner = i === undefined || j === undefined ? null : this.owner(i);
      return owner !== null && owner === this.owner(j);
    }
    spread(width) {
      let low = Infinity, high = -Infinity;
      this.elements.forEach((_, i) => { const c = this.get("held", i) % width; low = Math.min(low, c); high = Math.max(high, c); });
      return [low, high];
    }

    lay() {
      const d = this.d, lines = d.starts.length;
      const context = this.canvas.getContext("2d");
      context.font = "10px ui-monospace, monospace";
      this.labels = d.starts.map((e, n) => (d.banked ? `${Math.floor(this.byte(e) / (d.banks * d.bankBytes))}` : this.place(Math.max(0, e))));
      this.left = Math.ceil(Math.max(...this.labels.map((t) => context.measureText(t).width))) + 8;
      this.top = 16;
      const room = this.canvas.parentElement.clientWidth - this.left - 18;  // with room for a scroll bar
      this.size = Math.max(3, Math.min(14, Math.floor(room / d.columns), Math.max(6, Math.floor(590 / lines))));
      const width = this.left + d.columns * this.size + 1, height = this.top + lines * this.size + Math.max(1, 6 - this.size / 2);  // with room for the last label
      const scale = window.devicePixelRatio || 1;
      this.canvas.width = width * scale; this.canvas.height = height * scale;
      this.canvas.style.width = `${width}px`; this.canvas.style.height = `${height}px`;
      this.scale = scale;
      this.draw();
      this.legend();
    }

    draw() {
      const d = this.d, c = this.canvas.getContext("2d"), s = this.size, gap = s > 5 ? 1 : 0;
      c.setTransform(this.scale, 0, 0, this.scale, 0, 0);
      c.fillStyle = ink("--void");
      c.fillRect(0, 0, this.canvas.width, this.canvas.height);
      const empty = ink("--empty"), pale = ink("--pale"), quiet = ink("--quiet"), alarm = ink("--alarm"), strong = ink("--ink");
      const request = this.chosen, touched = new Map(), crowded = new Set(request ? request.crowded : []), fetched = new Set();
      if (request) {
        for (let i = 0; i < request.runs.length; i += 3)
          for (let n = 0; n < request.runs[i + 2]; n++) {
            const e = request.runs[i + 1] + n;
            if (!touched.has(e)) touched.set(e, request.runs[i]);
            if (d.memory === "global") fetched.add(Math.floor(this.byte(e) / d.transaction));
          }
      }
      for (let line = 0; line < d.starts.length; line++)
        for (let column = 0; column < this.length(line); column++) {
          const e = this.element(line, column);
          if (e === null) continue;
          const x = this.left + column * s, y = this.top + line * s, i = this.at.get(e);
          if (request) {
            const thread = touched.get(e);
            const part = d.memory === "global" && fetched.has(Math.floor(this.byte(e) / d.transaction));
            c.fillStyle = thread !== undefined ? this.lane(thread) : i === undefined ? empty : pale;
            c.fillRect(x, y, s - gap, s - gap);
            if (thread === undefined && part) {
              c.strokeStyle = quiet;
              c.beginPath(); c.moveTo(x + 1, y + s - gap - 1); c.lineTo(x + s - gap - 1, y + 1); c.stroke();
            }
            if (crowded.has(e)) { c.strokeStyle = alarm; c.lineWidth = 2; c.strokeRect(x + 0.5, y + 0.5, s - gap - 1, s - gap - 1); c.lineWidth = 1; }
          } else {
            const right = gap && this.alike(e, this.element(line, column + 1)) ? 0 : gap;
            const below = gap && this.alike(e, this.element(line + 1, column)) ? 0 : gap;
            c.fillStyle = i === undefined ? empty : this.colour(i);
            c.fillRect(x, y, s - right, s - below);
            if (gap && !right && !below && !this.alike(e, this.element(line + 1, column + 1))) {
              c.fillStyle = ink("--void");
              c.fillRect(x + s - 1, y + s - 1, 1, 1);
            }
          }
        }
      c.fillStyle = quiet;
      c.font = "10px ui-monospace, monospace";
      c.textBaseline = "middle";
      const every = Math.max(1, Math.ceil(11 / s));
      c.textAlign = "right";
      for (let line = 0; line < d.starts.length; line += every) c.fillText(this.labels[line], this.left - 5, this.top + line * s + s / 2);
      c.textAlign = "left";
      const each = d.banked ? d.bankBytes / d.bytes : 1, first = d.banked ? 0 : d.starts[0] % (d.shape[d.shape.length - 1] || 1);
      for (let column = 0; column < d.columns; column += Math.max(8, Math.ceil(24 / s / 8) * 8)) {
        const text = d.banked ? `${column ? "" : "bank "}${Math.floor(column / each)}` : `${(first + column) * ((d.scale || []).at(-1) || 1)}`;
        c.fillText(text, this.left + column * s, 7);
      }
      if (this.cursor) {
        c.strokeStyle = strong; c.lineWidth = 2;
        c.strokeRect(this.left + this.cursor[1] * s - 1, this.top + this.cursor[0] * s - 1, s + 1, s + 1);
        c.lineWidth = 1;
      }
    }

    text(e) {
      const d = this.d, i = this.at.get(e), out = [`${d.name}${this.place(e)}${this.coarse()}`];
      if (d.memory === "shared") {
        const word = Math.floor(this.byte(e) / d.bankBytes);
        out[0] += `: bank ${word % d.banks}, row ${Math.floor(word / d.banks)}, byte ${number(this.byte(e))}`;
      }
      if (this.chosen) {
        const threads = [];
        for (let k = 0; k < this.chosen.runs.length; k += 3)
          if (this.chosen.runs[k + 1] <= e && e < this.chosen.runs[k + 1] + this.chosen.runs[k + 2]) threads.push(this.chosen.runs[k]);
        if (threads.length) {
          out.push(`${threads.length === 1 ? "thread" : "threads"} ${threads.slice(0, 8).join(", ")}${threads.length > 8 ? ` and ${threads.length - 8} more` : ""} in this request`);
          if (this.chosen.crowded.includes(e)) out.push("its bank is asked for more than it gives at once");
          return out.join("\n");
        }
      }
      if (i === undefined) {
        out.push(d.held !== undefined ? `no element of ${d.tensor.name} was found here` : d.registers ? "in no register" : d.block !== undefined ? "no block touches it" : "not touched");
        return out.join("\n");
      }
      if (d.held !== undefined) {
        out.push(`holds ${d.tensor.name}${index(this.get("held", i), d.tensor.shape)} when it is ${d.moment} read`);
        return out.join("\n");
      }
      if (d.block !== undefined) {
        const n = this.get("blocks", i);
        out.push(`${this.block(this.get("block", i))}${n > 1 ? ` and ${times(n - 1, "more block", "more blocks")}` : ""}`);
        return out.join("\n");
      }
      if (d.registers) return [...out, ...this.holders(e)].join("\n");
      const thread = this.get("thread", i), touches = this.get("touches", i), threads = this.get("threads", i);
      out.push(this.who(thread));
      out.push(`first in request ${number(this.get("time", i) + 1)} of ${number(d.count)}`);
      if (touches > 1) out.push(`${d.writes ? "written" : "read"} ${times(touches, "time", "times")} by ${times(threads, "thread", "threads")}`);
      return out.join("\n");
    }

    holders(e) {  // the threads that hold an element, each with the register it is in
      const r = this.d.registers, runs = this.d.runs, out = [];
      let more = 0;
      for (let k = 0; k < runs.length; k += 4) {
        const at = e - runs[k + 2];
        if (at < 0 || at >= runs[k + 3]) continue;
        if (out.length < 4) out.push(`${this.who(runs[k])}, in ${r.name}${index(runs[k + 1] + at, r.shape)}`);
        else more++;
      }
      if (more) out.push(`and ${times(more, "more register", "more registers")}`);
      return out.length ? out : [this.who(this.get("thread", this.at.get(e)))];
    }

    units(level) {  // what each unit of a level holds, in the form of requests
      const each = this.each(level), found = new Map(), runs = this.d.runs;
      for (let k = 0; k < runs.length; k += 4) {
        const unit = Math.floor(runs[k] / each);
        if (!found.has(unit)) found.set(unit, { number: unit, level, runs: [], crowded: [], registers: 0 });
        const one = found.get(unit);
        one.runs.push(runs[k], runs[k + 2], runs[k + 3]);
        one.registers += runs[k + 3];
      }
      return [...found.values()].sort((a, b) => a.number - b.number);
    }

    point(cell, x, y) {
      this.cursor = cell;
      const e = cell && this.element(...cell);
      if (e === null || e === undefined) { tip.hidden = true; this.cursor = null; this.draw(); return; }
      tip.textContent = this.text(e);
      tip.hidden = false;
      const box = this.canvas.getBoundingClientRect();
      const px = x ?? box.left + this.left + (cell[1] + 1) * this.size, py = y ?? box.top + this.top + (cell[0] + 1) * this.size;
      const w = tip.offsetWidth, h = tip.offsetHeight;
      tip.style.left = `${Math.max(4, px + 14 + w > innerWidth ? px - w - 10 : px + 14)}px`;
      tip.style.top = `${Math.max(4, py + 14 + h > innerHeight ? py - h - 10 : py + 14)}px`;
      this.draw();
    }

    choose(request) {
      this.chosen = request || null;
      if (!this.chosen) this.said.textContent = this.hint();
      else if (this.d.registers) {
        const r = this.chosen, elements = new Set();
        for (let k = 0; k < r.runs.length; k += 3) for (let n = 0; n < r.runs[k + 2]; n++) elements.add(r.runs[k + 1] + n);
        const lane = r.level === "thread" ? ` (warp ${this.warp(r.number)}, lane ${r.number % this.d.warp})` : "";
        this.said.textContent = `${r.level[0].toUpperCase()}${r.level.slice(1)} ${r.number}${lane} holds ${times(elements.size, "element", "elements")} of ${this.d.name}, in ${times(r.registers, "register", "registers")} of ${this.d.registers.name}.`;
      } else {
        const r = this.chosen, d = this.d, threads = new Set(r.runs.filter((_, k) => k % 3 === 0)).size;
        const asked = `${times(threads, "thread", "threads")}, ${times(r.elements, "element", "elements")}, ${times(r.elements * d.bytes, "byte", "bytes")}`;
        const cost = d.memory === "global"
          ? `${times(r.cost, "transaction", "transactions")} of ${d.transaction} bytes${r.cost > r.least ? `, ${number(r.least)} would hold them` : ""}`
          : r.cost ? `${times(r.cost, "extra phase", "extra phases")}: more than one word is wanted of a bank (outlined)` : "no bank conflict";
        this.said.textContent = `Request ${number(r.number + 1)} of ${number(d.count)}, warp ${r.warp}: ${asked}; ${cost}.`;
      }
      this.draw();
      this.legend();
    }

    hint() {
      const what = this.d.registers ? "what one unit holds" : "one request of a warp";
      return `A click on a cell, or the buttons, show ${what} alone.`;
    }

    alone() {  // what can be shown alone: requests, or the units of the level that the colours show
      if (!this.d.registers) return this.d.requests || [];
      const level = this.isLevel(this.mode) ? this.mode : "thread";
      if (!this.kept || this.kept.level !== level) this.kept = { level, units: this.units(level) };
      return this.kept.units;
    }

    requests() {
      const bar = this.figure.querySelector(".requests");
      if (!bar || !this.alone().length) return;
      bar.hidden = false;
      this.said.hidden = false;
      this.said.textContent = this.hint();
      const beside = (step) => {
        const list = this.alone(), at = this.chosen ? list.findIndex((r) => r.number === this.chosen.number) + step : 0;
        return list[Math.max(0, Math.min(list.length - 1, at))];
      };
      const go = {
        previous: () => beside(-1),
        next: () => beside(1),
        worst: () => this.d.requests.find((r) => r.number === this.d.worst),
        all: () => null,
      };
      all("button[data-go]", bar).forEach((b) => b.addEventListener("click", () => this.choose(go[b.dataset.go]())));
    }

    listen() {
      const canvas = this.canvas;
      const cell = (event) => [Math.floor((event.offsetY - this.top) / this.size), Math.floor((event.offsetX - this.left) / this.size)];
      const pick = () => {
        const e = this.cursor && this.element(...this.cursor), i = e === null ? undefined : this.at.get(e);
        if (i === undefined || !this.alone().length) return;
        if (this.d.registers) {
          const mode = this.isLevel(this.mode) ? this.mode : "thread", unit = Math.floor(this.get("thread", i) / this.each(mode));
          this.choose(this.alone().find((r) => r.number === unit));
          return;
        }
        const found = this.d.requests.find((r) => r.number === this.get("time", i));
        this.choose(found);
        if (!found) this.said.textContent = `Request ${number(this.get("time", i) + 1)} is not kept on this page: the first ${this.d.requests.length} and the dearest are.`;
      };
      canvas.addEventListener("mousemove", (event) => this.point(cell(event), event.clientX, event.clientY));
      canvas.addEventListener("mouseleave", () => this.point(null));
      canvas.addEventListener("blur", () => this.point(null));
      canvas.addEventListener("click", (event) => { this.point(cell(event), event.clientX, event.clientY); pick(); });  // a touch moves no mouse
      canvas.addEventListener("keydown", (event) => {
        const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
        if (move) {
          const [line, column] = this.cursor || [-move[0], -move[1]];  // the first key comes to the first cell
          const to = [Math.max(0, Math.min(this.d.starts.length - 1, line + move[0])), Math.max(0, Math.min(this.d.columns - 1, column + move[1]))];
          if (this.element(...to) !== null) this.point(to);
          event.preventDefault();
        } else if (event.key === "Enter") pick();
        else if (event.key === "Escape") { this.choose(null); this.point(null); }
      });
      if (this.select) this.select.addEventListener("change", () => { if (this.d.registers) this.choose(null); else { this.draw(); this.legend(); } });
    }

    legend() {
      const box = this.figure.querySelector(".legend"), d = this.d, mode = this.mode;
      box.textContent = "";
      const entry = (style, text, kind = "") => {
        const span = document.createElement("span"), swatch = document.createElement("i");
        swatch.style.background = style; swatch.className = kind;
        span.append(swatch, text); box.append(span);
      };
      const across = (h) => `linear-gradient(90deg, ${gradient(h, 0)}, ${gradient(h, 1)})`;
      if (this.isLevel(mode) && mode !== "thread" && mode !== "warp" && !this.chosen) {
        const units = [...new Set(this.elements.map((_, i) => Math.floor(this.get("thread", i) / this.each(mode))))].sort((a, b) => a - b);
        units.slice(0, 8).forEach((u) => entry(gradient(hue(u), 0.35), `${mode} ${u}`, "box"));
        if (units.length > 8) box.append(`and ${units.length - 8} more`);
      } else if (mode === "thread" || mode === "warp" || this.chosen) {
        const fields = Array.isArray(d.thread) ? d.thread : [d.thread], warps = [...new Set(fields.map((t) => this.warp(t)))].sort((a, b) => a - b);
        const last = Math.min(d.warp, d.block_threads) - 1;
        if (d.block_threads <= d.warp) entry(last ? `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(ramp).join(", ")})` : ramp(0.35), last ? `threads 0 to ${last}` : "thread 0");
        else warps.slice(0, 8).forEach((w, n) => entry(mode === "warp" && !this.chosen ? gradient(hue(w), 0.35) : across(hue(w)),
          `warp ${w}${n || (mode === "warp" && !this.chosen) ? "" : `, lanes 0 to ${last}`}`, mode === "warp" && !this.chosen ? "box" : ""));
        if (warps.length > 8) box.append(`and ${warps.length - 8} more warps`);
        if (this.chosen && d.memory === "global") entry(`linear-gradient(135deg, ${ink("--pale")} 45%, ${ink("--quiet")} 45% 55%, ${ink("--pale")} 55%)`, d.writes ? "moved along, not written" : "moved along, not asked for", "box");
        if (this.chosen && d.memory === "shared" && this.chosen.crowded.length) entry(ink("--alarm"), "in a crowded bank", "box");
      } else if (mode === "content") {
        box.append(`colour: row of ${d.tensor.name}; shade: place in the row`);
      } else if (mode === "block") {
        const blocks = new Map();
        this.elements.forEach((_, i) => { if (blocks.size <= 8 && !blocks.has(this.get("block", i))) blocks.set(this.get("block", i), this.colour(i)); });
        if (blocks.size <= 8) [...blocks].sort((a, b) => a[0] - b[0]).forEach(([block, colour]) => entry(colour, this.block(block), "box"));
        else box.append(d.grid[0] > 12 ? "blocks in turn: three colours in four shades, again and again" : "colour: the block's row in the grid; shade: its place in the row");
        if (this.range.blocks[1] > 1) box.append("of several blocks the first");
      } else {
        const [low, high] = this.range[mode], one = { time: 1 }[mode] || 0;
        const said = {
          time: (t) => `request ${t}`, touches: (t) => `touched ${t} times`, blocks: (t) => `${t} blocks`,
          register: (t) => `register ${t} of its thread`, copies: (t) => `held by ${t} threads`,
        }[mode];
        if (low === high) entry(ramp(0.35), said(number(low + one)), "box");
        else entry(`linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(ramp).join(", ")})`, said(`${number(low + one)} to ${number(high + one)}`));
      }
      if (this.elements.length < d.starts.reduce((sum, _, line) => sum + this.length(line), 0))
        entry(ink("--empty"), d.held !== undefined ? `none of ${d.tensor.name}` : d.registers ? "in no register" : "not touched", "box");
      const cut = this.figure.querySelector(".cut");
      const held = d.held !== undefined || d.registers, left = [];
      if (d.cut) left.push(`Not shown: ${held ? times(d.cut, "held element", "held elements") : times(d.cut, "touched element", "touched elements")} beyond the picture's edge.`);
      if (this.coarse()) left.push(`A cell is ${d.scale.slice(-2).join(" x ")} elements, and shows the first.`);
      if (d.runs_cut) left.push(`Threads from ${d.runs[d.runs.length - 4]} on cannot be shown alone.`);
      cut.hidden = !left.length;
      cut.textContent = left.join(" ");
    }
  }
  return Picture;
})();
