// The graph of the instructions of one computation, from which one goes into fusions, loops and calls.

import dagre from "@dagrejs/dagre";
import { el, svg } from "./dom.js";
import { bytes, flops, percent, seconds } from "./format.js";

const MOST = 700;
const QUIET = new Set(["parameter", "constant", "get-tuple-element", "tuple", "bitcast"]);

export class Graph {
  constructor(actions) {
    this.actions = actions;
    this.path = el("nav", { class: "crumbs", "aria-label": "Computations" });
    this.picture = el("div", { class: "picture", tabindex: "0", role: "group", "aria-label": "Graph" });
    this.all = el("input", { type: "checkbox", id: "graph-all", onchange: () => this.show() });
    this.element = el(
      "dialog",
      { class: "sheet graph", "aria-label": "Graph of fusions" },
      el("header", {}, el("h2", {}, "Graph"), this.path, el("span", { class: "grow" }),
        el("label", { for: "graph-all" }, this.all, " parameters and constants"),
        el("button", { class: "quiet", onclick: () => this.element.close() }, "Close")),
      this.picture,
    );
  }

  open(program) {
    if (this.program !== program) {
      this.program = program;
      const computations = program.data.hlo.computations ?? [];
      this.levels = [Math.max(0, computations.findIndex((c) => c.entry))];
    }
    this.element.showModal();
    this.show();
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
    const places = nodes.length <= MOST ? layered(nodes, edges) : inRows(nodes, edges);
    return this.paint(nodes, edges, places, calls);
  }

  paint(nodes, edges, places, calls) {
    const total = this.program.data.cost?.seconds || 1;
    const most = Math.max(1e-30, ...nodes.map((n) => n.seconds));
    const drawing = svg("svg", { width: places.width, height: places.height, viewBox: `0 0 ${places.width} ${places.height}` });
    drawing.append(
      svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        svg("path", { d: "M0 0 L8 4 L0 8 z", class: "tip" }))),
    );
    for (const [from, to] of edges) {
      const points = places.edges?.get(`${from}\n${to}`) ?? [places.nodes.get(from), places.nodes.get(to)];
      drawing.append(svg("path", { class: "edge", d: curve(points), "marker-end": "url(#tip)" }));
    }
    for (const node of nodes) {
      const at = places.nodes.get(node.name);
      const inside = calls.get(node.name);
      const group = svg("g", { class: `node${inside ? " holds" : ""}`, tabindex: 0, role: "button",
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

function layered(nodes, edges) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 34, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.name, { width: widthOf(node), height: 44 });
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const { width, height } = graph.graph();
  return {
    width: Math.max(200, width), height: Math.max(80, height),
    nodes: new Map(nodes.map((n) => [n.name, graph.node(n.name)])),
    edges: new Map(graph.edges().map((e) => [`${e.v}\n${e.w}`, graph.edge(e).points])),
  };
}

// For large graphs: rows by the longest way from the start, without untangling the edges.
function inRows(nodes, edges) {
  const into = new Map();
  for (const [from, to] of edges) into.set(to, [...(into.get(to) ?? []), from]);
  const levels = new Map();
  const rows = [];
  const places = new Map();
  for (const node of nodes) {
    const level = 1 + Math.max(-1, ...(into.get(node.name) ?? []).map((n) => levels.get(n) ?? -1));
    levels.set(node.name, level);
    const row = (rows[level] ??= { x: 20 });
    const width = widthOf(node);
    places.set(node.name, { x: row.x + width / 2, y: 42 + level * 78, width, height: 44 });
    row.x += width + 22;
  }
  return { width: Math.max(...rows.map((r) => r?.x ?? 0)) + 20, height: rows.length * 78 + 40, nodes: places, edges: null };
}

function curve(points) {
  if (points.length === 2) {
    const [a, b] = points;
    return `M${a.x} ${a.y + 22} C${a.x} ${(a.y + b.y) / 2} ${b.x} ${(a.y + b.y) / 2} ${b.x} ${b.y - 24}`;
  }
  let path = `M${points[0].x} ${points[0].y}`;
  for (let i = 1; i + 1 < points.length; i++) {
    const [p, q] = [points[i], points[i + 1]];
    const end = i + 2 === points.length ? q : { x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 };
    path += ` Q${p.x} ${p.y} ${end.x} ${end.y}`;
  }
  return path;
}
