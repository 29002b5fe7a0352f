// The graph of the instructions of one computation, from which one goes into fusions, loops and calls.

import { el, svg } from "./dom.js";
import { bytes, flops, percent, seconds } from "./format.js";
import { layOut } from "./layout.js";

const QUIET = new Set(["parameter", "constant", "get-tuple-element", "tuple", "bitcast"]);

export class Graph {
  constructor(actions) {
    this.actions = actions;
    this.path = el("nav", { class: "crumbs", "aria-label": "Computations" });
    this.picture = el("div", { class: "picture", tabindex: "0", role: "group", "aria-label": "Graph" });
    this.all = el("input", { type: "checkbox", id: "graph-all", onchange: () => this.show() });
    this.scale = 1;
    this.size = { width: 1, height: 1 };
    const button = (text, title, action) => el("button", { class: "quiet", title, "aria-label": title, onclick: action }, text);
    this.element = el(
      "dialog",
      { class: "sheet graph", "aria-label": "Graph of fusions" },
      el("header", {}, el("h2", {}, "Graph"), this.path, el("span", { class: "grow" }),
        el("label", { for: "graph-all" }, this.all, " parameters and constants"),
        button("−", "Smaller", () => this.zoom(this.scale / 1.25)),
        button("+", "Larger", () => this.zoom(this.scale * 1.25)),
        button("Fit", "The whole width", () => this.zoom(Math.min(1, this.picture.clientWidth / this.size.width))),
        el("button", { class: "quiet", onclick: () => this.element.close() }, "Close")),
      this.picture,
    );
  }

  // `lines`: the lines of the instructions that are marked, the first of which is shown.
  open(program, lines) {
    this.lines = lines;
    if (this.program !== program) {
      this.program = program;
      const computations = program.data.hlo.computations ?? [];
      this.levels = [Math.max(0, computations.findIndex((c) => c.entry))];
    }
    this.element.showModal();
    this.show();
  }

  // Draws the graph in another size, around the same centre.
  zoom(scale) {
    const { picture } = this;
    const drawing = picture.querySelector("svg");
    if (!drawing) return;
    const centre = [(picture.scrollLeft + picture.clientWidth / 2) / this.scale, (picture.scrollTop + picture.clientHeight / 2) / this.scale];
    this.scale = Math.max(0.05, Math.min(2, scale));
    drawing.setAttribute("width", this.size.width * this.scale);
    drawing.setAttribute("height", this.size.height * this.scale);
    picture.scrollTo(centre[0] * this.scale - picture.clientWidth / 2, centre[1] * this.scale - picture.clientHeight / 2);
  }

  enter(name) {
    const number = this.program.data.hlo.computations.findIndex((c) => c.name === name);
    if (number < 0) return;
    this.levels.push(number);
    this.show();
  }

  show() {
    const computations = this.program.data.hlo.computations ?? [];
    this.path.replaceChildren(
      ...this.levels.map((number, i) =>
        el("button", { class: "quiet", "aria-current": i === this.levels.length - 1 ? "page" : undefined,
          onclick: () => { this.levels.length = i + 1; this.show(); } }, computations[number]?.name ?? "no program")),
    );
    const computation = computations[this.levels[this.levels.length - 1]];
    this.picture.replaceChildren(computation ? this.draw(computation, computations) : el("p", {}, "There is no optimised program."));
    const shown = this.picture.querySelector(".node.marked") ?? this.picture.querySelector(".node");
    shown?.scrollIntoView({ block: "center", inline: "center" });
  }

  draw(computation, computations) {
    const lines = this.program.lines("hlo");
    const names = new Map();
    const edges = [];
    const number = computations.indexOf(computation);
    const calls = new Map();
    for (const instruction of this.program.instructionByLine.values()) {
      if (instruction.computation !== number) continue;
      names.set(instruction.name, instruction);
    }
    // What reads a hidden instruction reads its operands.
    const operands = new Map();
    for (const instruction of names.values()) {
      const text = lines[instruction.line];
      const start = text.indexOf(` ${instruction.opcode}(`);
      const rest = text.slice(start);
      const read = [...rest.matchAll(/%([\w.-]+)/g)].map((m) => m[1]).filter((n) => names.has(n) && n !== instruction.name);
      operands.set(instruction.name, [...new Set(read)]);
      const called = /\b(?:calls|body|to_apply)=%?([\w.-]+)/.exec(rest);
      if (called && instruction.opcode !== "reduce") calls.set(instruction.name, called[1]);
    }
    const isShown = (i) => this.all.checked || !QUIET.has(i.opcode) || lines[i.line].includes("ROOT ");
    const sources = (name, seen = new Set()) => {
      const found = [];
      for (const operand of operands.get(name) ?? []) {
        if (seen.has(operand)) continue;
        seen.add(operand);
        if (isShown(names.get(operand))) found.push(operand);
        else found.push(...sources(operand, seen));
      }
      return found;
    };
    const nodes = [...names.values()].filter(isShown);
    for (const node of nodes) for (const source of sources(node.name)) edges.push([source, node.name]);
    const { width, height, places, paths } = layOut(nodes.map((n) => ({ name: n.name, width: widthOf(n) })), edges);
    return this.paint(nodes, { width: Math.max(200, width), height: Math.max(80, height) }, places, paths, calls);
  }

  paint(nodes, size, places, paths, calls) {
    const total = this.program.data.cost?.seconds || 1;
    const most = Math.max(1e-30, ...nodes.map((n) => n.seconds));
    this.size = size;
    const drawing = svg("svg", { width: size.width * this.scale, height: size.height * this.scale, viewBox: `0 0 ${size.width} ${size.height}` });
    drawing.append(
      svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        svg("path", { d: "M0 0 L8 4 L0 8 z", class: "tip" }))),
    );
    const edgesOf = new Map(nodes.map((n) => [n.name, []]));
    for (const { from, to, isFar, path } of paths) {
      const edge = svg("path", { class: isFar ? "edge far" : "edge", d: path, "marker-end": "url(#tip)" });
      drawing.append(edge);
      edgesOf.get(from).push(edge);
      edgesOf.get(to).push(edge);
    }
    for (const node of nodes) {
      const at = places.get(node.name);
      const inside = calls.get(node.name);
      const group = svg("g", { class: `node${inside ? " holds" : ""}${this.lines.has(node.line) ? " marked" : ""}`, tabindex: 0, role: "button",
        transform: `translate(${at.x - at.width / 2} ${at.y - at.height / 2})` });
      const share = node.seconds / most;
      const box = svg("rect", { width: at.width, height: at.height, rx: 6 });
      box.style.setProperty("--heat", `${Math.round(52 * share)}%`);
      const label = svg("text", { x: 10, y: 18, class: "name" });
      label.textContent = (inside ? "⊞ " : "") + clip(node.name, 26);
      const detail = svg("text", { x: 10, y: 35, class: "detail" });
      detail.textContent = node.seconds ? `${node.opcode} · ${percent(node.seconds / total)}` : node.opcode;
      const about = svg("title");
      about.textContent = `${node.name}\n${node.opcode}${node.bytes ? `\n${flops(node.flops)}, ${bytes(node.bytes)}, ${seconds(node.seconds)}` : ""}${inside ? "\ndouble click: go inside" : ""}`;
      group.append(box, label, detail, about);
      const pick = () => this.actions.pick(node);
      const light = (isOn) => edgesOf.get(node.name).forEach((edge) => edge.classList.toggle("lit", isOn));
      for (const type of ["mouseenter", "focus"]) group.addEventListener(type, () => light(true));
      for (const type of ["mouseleave", "blur"]) group.addEventListener(type, () => light(false));
      group.addEventListener("click", pick);
      group.addEventListener("dblclick", () => inside && this.enter(inside));
      group.addEventListener("keydown", (event) => {
        if (event.key === " ") pick();
        else if (event.key === "Enter") { if (inside) this.enter(inside); else pick(); }
        else return;
        event.preventDefault();
      });
      drawing.append(group);
    }
    return drawing;
  }
}

const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const widthOf = (node) => Math.max(110, Math.min(26, node.name.length + 2) * 7.6 + 20);
