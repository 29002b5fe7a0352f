// One pane: the visible lines of a text, drawn as one scrolls, with marks, costs and folds.

import { el } from "./dom.js";
import { foldsOf, TITLES } from "./model.js";
import { stringLines, tokensOf } from "./tokens.js";

export const ROW = 19;
const AROUND = 12;

export class Pane {
  // `actions`: hover(pane, side, line, column, event), leave(), pick(pane, side, line, column), collapse(pane).
  constructor(kind, actions) {
    this.kind = kind;
    this.actions = actions;
    this.folded = new Set();
    this.cursor = -1;
    this.marks = { hover: [new Set(), new Set()], pinned: [new Set(), new Set()], found: [new Set(), new Set()] };
    this.ranges = [new Map(), new Map()];
    this.build();
  }

  build() {
    const title = TITLES[this.kind];
    this.count = el("span", { class: "count" });
    this.tabs = el("div", { class: "tabs", hidden: true });
    this.note = el("p", { class: "note", role: "note", hidden: true });
    this.body = el("div", { class: "rows", role: "presentation" });
    this.space = el("div", { class: "space", role: "presentation" }, this.body);
    this.scroll = el(
      "div",
      { class: "scroll", tabindex: "0", role: "listbox", "aria-label": `Lines of ${title}`, "data-pane": this.kind },
      this.space,
    );
    this.ruler = el("canvas", { class: "ruler", "aria-hidden": "true" });
    this.element = el(
      "section",
      { class: "pane", "data-pane": this.kind, "aria-label": title },
      el(
        "header",
        {},
        el("button", { class: "quiet fold-pane", title: `Collapse ${title}`, "aria-expanded": "true",
          onclick: () => this.actions.collapse(this) }, el("span", { "aria-hidden": "true" }, "▾"),
          el("span", { class: "title" }, title)),
        this.count,
        el("span", { class: "grow" }),
        el("button", { class: "quiet", title: `Copy ${title}`, onclick: (e) => this.copy(e.currentTarget) }, "Copy"),
      ),
      this.tabs,
      this.note,
      el("div", { class: "view" }, this.scroll, this.ruler),
    );
    this.scroll.addEventListener("scroll", () => this.draw(), { passive: true });
    this.scroll.addEventListener("mousemove", (e) => this.point(e, "hover"));
    this.scroll.addEventListener("mouseleave", () => this.actions.leave());
    this.scroll.addEventListener("click", (e) => this.point(e, "pick"));
    this.ruler.addEventListener("click", (e) => {
      const share = e.offsetY / this.ruler.clientHeight;
      this.scroll.scrollTop = share * this.rows.length * ROW - this.scroll.clientHeight / 2;
    });
    new ResizeObserver(() => this.draw(true)).observe(this.scroll);
  }

  // Shows the lines of one program, or those of two with pairs of line numbers as rows.
  show({ programs, file, lines, pairs, note }) {
    Object.assign(this, { programs, file, texts: lines, pairs });
    this.strings = this.kind === "python" ? lines.map(stringLines) : lines.map(() => null);
    this.folds = pairs ? new Int32Array(0) : foldsOf(lines[0]);
    this.folded.clear();
    this.width = 4 + Math.max(...lines.map((each) => each.reduce((most, line) => Math.max(most, line.length), 0)));
    this.digits = String(Math.max(...lines.map((each) => each.length))).length;
    this.note.textContent = note;
    this.note.hidden = !note;
    this.cursor = -1;
    this.largest = programs.map((program, side) => {
      let most = 0;
      for (let i = 0; i < lines[side].length; i++) {
        const cost = program.costOf(this.kind, i, file[side]);
        if (cost) most = Math.max(most, cost[2]);
      }
      return most;
    });
    this.element.classList.toggle("two", Boolean(pairs));
    this.fold();
  }

  // Works out the rows that are not inside of folded lines.
  fold() {
    this.rows = this.pairs ?? [];
    if (!this.pairs) {
      for (let line = 0; line < this.texts[0].length; line++) {
        this.rows.push([line, -1]);
        if (this.folded.has(line)) line = this.folds[line];
      }
    }
    this.rowOf = [new Map(), new Map()];
    this.rows.forEach(([a, b], row) => {
      if (a >= 0) this.rowOf[0].set(a, row);
      if (b >= 0) this.rowOf[1].set(b, row);
    });
    this.space.style.height = `${this.rows.length * ROW + 6}px`;
    this.body.style.setProperty("--digits", this.digits);
    const width = Math.min(this.width, 2100) + Number(this.digits) + 12;
    this.body.style.minWidth = this.pairs ? "0" : `calc(${width} * 1ch)`;
    // Both columns of a comparison scroll together, each in its half.
    this.space.style.width = this.pairs ? `max(100%, 50% + ${width} * 1ch)` : "";
    this.draw(true);
  }

  toggleFold(line) {
    if (!this.folds[line]) return;
    if (!this.folded.delete(line)) this.folded.add(line);
    this.fold();
  }

  // Makes a line visible: unfolds what it is in, and scrolls to it if it is out of sight.
  reveal(line, side = 0, { centre = true } = {}) {
    if (!this.rowOf[side].has(line) && !this.pairs) {
      for (const start of this.folded) if (start < line && line <= this.folds[start]) this.folded.delete(start);
      this.fold();
    }
    const row = this.rowOf[side].get(line);
    if (row === undefined) return;
    const [top, height] = [this.scroll.scrollTop, this.scroll.clientHeight];
    if (row * ROW < top + ROW || (row + 2) * ROW > top + height) {
      this.scroll.scrollTop = centre ? row * ROW - height / 2.5 : row * ROW < top + ROW ? (row - 1) * ROW : (row + 2) * ROW - height;
    }
    this.draw();
  }

  // Scrolls so that a line is the first in sight.
  top(line, side = 0) {
    const row = this.rowOf[side].get(line);
    if (row !== undefined) this.scroll.scrollTop = row * ROW;
  }

  setMarks(kind, lines, ranges) {
    this.marks[kind] = lines.map((each) => new Set(each));
    if (kind !== "found") this[`${kind}Ranges`] = ranges;
    this.drawMarks();
  }

  drawMarks() {
    this.unmarked = true;
    this.draw();
  }

  draw(fresh = false) {
    if (!this.rows) return;
    if (fresh) this.stale = true;
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.drawNow();
    });
  }

  drawNow() {
    const [top, height] = [this.scroll.scrollTop, this.scroll.clientHeight];
    const first = this.printing ? 0 : Math.max(0, Math.floor(top / ROW) - AROUND);
    const last = this.printing
      ? Math.min(this.rows.length, 4000)
      : Math.min(this.rows.length, Math.ceil((top + height) / ROW) + AROUND);
    this.body.style.width = this.pairs ? `${this.scroll.clientWidth}px` : "";
    this.body.style.setProperty("--shift", this.pairs ? `${this.scroll.scrollLeft}px` : "0px");
    if (this.stale || first !== this.first || last !== this.last) {
      const changed = this.stale;
      Object.assign(this, { first, last, stale: false });
      this.body.style.transform = `translateY(${first * ROW}px)`;
      const made = document.createDocumentFragment();
      for (let row = first; row < last; row++) made.append(this.drawRow(row));
      this.body.replaceChildren(made);
      this.unmarked ||= changed;
    } else if (this.unmarked) this.markRows();
    if (this.unmarked) this.drawRuler();
    this.unmarked = false;
  }

  // Changes the marks of the lines that are drawn, which is faster than to draw them again.
  markRows() {
    for (const made of this.body.querySelectorAll(".line[data-line]")) {
      const [line, side, row] = [Number(made.dataset.line), Number(made.dataset.side), Number(made.dataset.row)];
      const classes = this.classesOf(line, side, row);
      if (made.className !== classes) {
        made.className = classes;
        made.setAttribute("aria-selected", String(this.marks.pinned[side].has(line)));
      }
      if (this.kind !== "python") continue;
      const key = String(this.rangesOf(line, side));
      if (made.ranges === key) continue;
      made.ranges = key;
      made.querySelector(".code").replaceWith(this.drawText(this.texts[side][line], line, side));
    }
  }

  classesOf(line, side, row) {
    const classes = ["line"];
    for (const kind of ["hover", "pinned", "found"]) if (this.marks[kind][side].has(line)) classes.push(kind);
    if (row === this.cursor) classes.push("cursor");
    return classes.join(" ");
  }

  rangesOf(line, side) {
    return [
      ...(this.hoverRanges?.[side]?.get(line) ?? []).map((r) => [...r, "at"]),
      ...(this.pinnedRanges?.[side]?.get(line) ?? []).map((r) => [...r, "pin"]),
    ];
  }

  drawRow(row) {
    const pair = this.rows[row];
    if (!this.pairs) return this.drawLine(pair[0], 0, row);
    const [a, b] = pair;
    const kind = a < 0 ? "added" : b < 0 ? "removed" : this.texts[0][a] === this.texts[1][b] ? "same"
      : this.keys[0][a] === this.keys[1][b] ? "renamed" : "changed";
    const made = el("div", { class: `pair ${kind}`, role: "presentation" });
    made.append(a >= 0 ? this.drawLine(a, 0, row) : el("div", { class: "line gap", role: "presentation" }));
    made.append(b >= 0 ? this.drawLine(b, 1, row) : el("div", { class: "line gap", role: "presentation" }));
    return made;
  }

  drawLine(line, side, row) {
    const program = this.programs[side];
    const text = this.texts[side][line];
    const made = el("div", {
      class: this.classesOf(line, side, row), "data-row": row, role: "option", id: `${this.kind}-${side}-${line}`, "data-line": line, "data-side": side,
      "aria-selected": this.marks.pinned[side].has(line) ? "true" : "false",
    });
    const place = program.placeOf(this.kind, line, this.file[side]);
    const stripe = el("span", { class: "stripe" });
    if (place !== null) stripe.style.background = `hsl(${(place * 47) % 360} 62% var(--stripe))`;
    const number = el("span", { class: "number" }, String(line + 1));
    const canFold = !this.pairs && this.folds[line];
    const fold = el("span", { class: canFold ? "fold" : "fold none" }, canFold ? (this.folded.has(line) ? "▸" : "▾") : "");
    made.append(stripe, number, fold);
    if (this.kind !== "stablehlo" && program.data.cost) made.append(this.drawCost(program, line, side));
    made.ranges = String(this.rangesOf(line, side));
    made.append(this.drawText(text, line, side));
    if (canFold && this.folded.has(line)) {
      made.append(el("span", { class: "folded" }, ` … ${this.folds[line] - line} lines`));
    }
    return made;
  }

  drawCost(program, line, side) {
    const cost = program.costOf(this.kind, line, this.file[side]);
    const box = el("span", { class: "cost" });
    if (cost && this.largest[side]) {
      const bar = el("span", { class: "bar" });
      bar.style.width = `${Math.max(2, (100 * cost[2]) / this.largest[side])}%`;
      box.append(bar);
    }
    return box;
  }

  drawText(text, line, side) {
    const tokens = tokensOf(this.kind, text, this.strings[side]?.[line]);
    const ranges = this.rangesOf(line, side);
    const code = el("span", { class: "code" });
    if (!ranges.length) {
      let done = 0;
      for (const [start, end, kind] of tokens) {
        if (start > done) code.append(text.slice(done, start));
        code.append(el("span", { class: `t-${kind}` }, text.slice(start, end)));
        done = end;
      }
      code.append(text.slice(done));
      return code;
    }
    const indent = text.length - text.trimStart().length;
    const cuts = new Set([0, text.length]);
    for (const [start, end] of [...tokens, ...ranges]) {
      cuts.add(Math.min(start, text.length));
      cuts.add(Math.min(end, text.length));
    }
    for (const [start] of ranges) if (start < indent) cuts.add(indent);
    const places = [...cuts].sort((a, b) => a - b);
    for (let i = 0; i + 1 < places.length; i++) {
      const [start, end] = [places[i], places[i + 1]];
      const token = tokens.find((t) => t[0] <= start && end <= t[1]);
      const within = ranges.filter((r) => Math.max(r[0], indent) <= start && end <= r[1]).map((r) => r[2]);
      const classes = [token && `t-${token[2]}`, ...new Set(within)].filter(Boolean).join(" ");
      code.append(classes ? el("span", { class: classes }, text.slice(start, end)) : text.slice(start, end));
    }
    return code;
  }

  // Where on the whole text the marks are, beside the scroll bar.
  drawRuler() {
    const [width, height] = [this.ruler.clientWidth, this.ruler.clientHeight];
    const scale = window.devicePixelRatio || 1;
    this.ruler.width = width * scale;
    this.ruler.height = height * scale;
    const context = this.ruler.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(this.element);
    for (const kind of ["found", "hover", "pinned"]) {
      context.fillStyle = style.getPropertyValue(`--mark-${kind}`);
      // Many lines share a pixel.
      const tops = new Set();
      this.marks[kind].forEach((lines, side) => {
        for (const line of lines) {
          const row = this.rowOf[side].get(line);
          if (row !== undefined) tops.add(Math.round((row / this.rows.length) * height));
        }
      });
      for (const top of tops) context.fillRect(2, top, width - 4, 2.5);
    }
  }

  point(event, action) {
    const target = event.target.closest?.(".line[data-line]");
    if (!target) {
      if (action === "hover") this.actions.leave();
      return;
    }
    const [line, side] = [Number(target.dataset.line), Number(target.dataset.side)];
    if (action === "pick" && event.target.closest(".fold:not(.none), .folded")) {
      this.toggleFold(line);
      return;
    }
    if (action === "pick" && String(getSelection())) return;
    this.actions[action](this, side, line, this.columnAt(event, target), event);
  }

  columnAt(event, target) {
    const code = target.querySelector(".code");
    if (!code || event.clientX < code.getBoundingClientRect().left) return null;
    let node, offset;
    if (document.caretPositionFromPoint) {
      const at = document.caretPositionFromPoint(event.clientX, event.clientY);
      [node, offset] = [at?.offsetNode, at?.offset];
    } else {
      const at = document.caretRangeFromPoint?.(event.clientX, event.clientY);
      [node, offset] = [at?.startContainer, at?.startOffset];
    }
    if (!node || !code.contains(node)) return null;
    let column = node.nodeType === Node.TEXT_NODE ? offset : 0;
    // A caret stands between characters; the one pointed at may be that before it.
    const caret = document.createRange();
    caret.setStart(node, offset);
    if (caret.getBoundingClientRect().left > event.clientX) column = Math.max(0, column - 1);
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text && text !== node; text = walker.nextNode()) column += text.length;
    return column >= code.textContent.length ? null : column;
  }

  moveCursor(step) {
    const start = this.cursor < 0 ? Math.floor(this.scroll.scrollTop / ROW) - Math.sign(step) : this.cursor;
    this.setCursor(Math.max(0, Math.min(this.rows.length - 1, start + step)));
  }

  setCursor(row) {
    this.cursor = row;
    const [a, b] = this.rows[row] ?? [-1, -1];
    const side = a >= 0 ? 0 : 1;
    const line = a >= 0 ? a : b;
    this.scroll.setAttribute("aria-activedescendant", `${this.kind}-${side}-${line}`);
    this.reveal(line, side, { centre: false });
    this.drawMarks();
    return [side, line];
  }

  get cursorPlace() {
    const pair = this.rows[this.cursor];
    return pair ? (pair[0] >= 0 ? [0, pair[0]] : [1, pair[1]]) : null;
  }

  async copy(button) {
    const text = this.texts.map((lines) => lines.join("\n")).join("\n\n");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page from a file, or in a frame, may not; the old way needs no permission.
      const area = el("textarea", { "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1200);
  }
}
