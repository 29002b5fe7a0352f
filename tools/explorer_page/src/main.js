// The page: four panes of one program, or of two beside one another, and what links their lines.

import { costSheet } from "./costs.js";
import { align, keyOf } from "./diff.js";
import { el } from "./dom.js";
import { baseName, bytes, counted, flops, percent, seconds } from "./format.js";
import { Graph } from "./graph.js";
import { PANES, Program, TITLES } from "./model.js";
import { Pane } from "./pane.js";
import { formatAddress, parseAddress, search } from "./state.js";
import { nameAt, typeOf } from "./tokens.js";

const KEYS = [
  ["↑ ↓", "move along the lines of a pane"],
  ["Enter", "pin the line, and show what belongs to it"],
  ["Esc", "let go of what is pinned"],
  ["1 2 3 4", "go to a pane"],
  ["[ ]", "go to the linked line in the pane before or after"],
  ["/", "search; n and N go on and back"],
  ["← →", "fold and unfold"],
  ["p", "the next program"],
  ["d", "compare with another program"],
  ["g", "the graph of fusions"],
  ["c", "costs"],
  ["t", "light or dark"],
  ["?", "this help"],
];

class App {
  constructor(root, data) {
    this.data = data;
    this.programs = data.programs.map((program) => new Program(program, data.files));
    this.current = 0;
    this.other = null;
    this.file = [0, 0];
    this.pinned = null;
    this.hovered = null;
    this.query = "";
    this.found = [];
    this.build(root);
    this.setTheme(remembered("theme"));
    this.open(0);
    addEventListener("hashchange", () => this.followAddress());
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    this.followAddress();
    // The tables of links are ready before the first line is pointed at.
    setTimeout(() => this.programs.forEach((p) => PANES.forEach((kind) => p.linesOf(kind, new Set(), 0))), 50);
  }

  build(root) {
    const actions = {
      hover: (...args) => this.hover(...args),
      leave: () => this.leave(),
      pick: (...args) => this.pick(...args),
      collapse: (pane) => this.collapse(pane),
    };
    this.panes = Object.fromEntries(PANES.map((kind) => [kind, new Pane(kind, actions)]));
    this.tabs = el("div", { class: "programs", role: "tablist", "aria-label": "Programs" });
    this.compare = el("select", { "aria-label": "Compare with", onchange: () => this.compareWith(this.compare.value) });
    this.input = el("input", {
      type: "search", placeholder: "Search   /", "aria-label": "Search in all panes", spellcheck: "false",
      oninput: () => this.search(this.input.value),
      onkeydown: (event) => {
        if (event.key === "Enter") this.nextFound(event.shiftKey ? -1 : 1);
        else if (event.key === "Escape") { this.input.value = ""; this.search(""); this.panes.python.scroll.focus(); }
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
    });
    this.results = el("span", { class: "results", role: "status" });
    this.facts = el("div", { class: "facts" });
    this.status = el("footer", { class: "status", role: "status", "aria-live": "polite" });
    this.card = el("div", { class: "card", role: "tooltip", hidden: true });
    this.graph = new Graph({ pick: (node) => { this.goTo({ pane: "hlo", line: node.line }); } });
    this.help = el("dialog", { class: "sheet help", "aria-label": "Keys" },
      el("header", {}, el("h2", {}, "Keys"), el("span", { class: "grow" }),
        el("button", { class: "quiet", onclick: () => this.help.close() }, "Close")),
      el("dl", {}, ...KEYS.flatMap(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)])));
    const button = (text, title, action) => el("button", { class: "quiet", title, onclick: action }, text);
    this.grid = el("main", { class: "panes" }, ...PANES.map((kind) => this.panes[kind].element));
    root.append(
      el("header", { class: "bar" },
        el("h1", {}, "xtrace", el("span", {}, " explorer")), this.tabs, this.compare, el("span", { class: "grow" }), this.results, this.input,
        button("Graph", "Graph of fusions (g)", () => this.openGraph()),
        button("Costs", "Costs (c)", () => this.showCosts()),
        button("◐", "Light or dark (t)", () => this.toggleTheme()),
        button("?", "Keys (?)", () => this.help.showModal())),
      this.facts, this.grid, this.status, this.card, this.graph.element, this.help,
    );
    this.tabs.append(...this.programs.map((program, i) =>
      el("button", { role: "tab", class: "tab", onclick: () => this.open(i) }, program.name)));
    this.compare.hidden = this.programs.length < 2;
  }

  get program() {
    return this.programs[this.current];
  }

  // The programs that are shown: one, or two beside one another.
  get shown() {
    return this.other === null ? [this.program] : [this.program, this.programs[this.other]];
  }

  open(number) {
    this.current = Math.max(0, Math.min(this.programs.length - 1, number));
    if (this.other === this.current) this.other = null;
    [...this.tabs.children].forEach((tab, i) => tab.setAttribute("aria-selected", String(i === this.current)));
    this.tabs.children[this.current].scrollIntoView({ block: "nearest", inline: "nearest" });
    this.compare.replaceChildren(
      el("option", { value: "" }, "compare with …"),
      ...this.programs.map((p, i) => i === this.current ? null : el("option", { value: i, selected: i === this.other }, p.name)).filter(Boolean),
    );
    this.pinned = this.hovered = this.pinnedLinks = null;
    this.file = this.shown.map((p) => p.ownFiles()[0] ?? 0);
    this.show();
    this.showStart();
    this.describe(null);
    this.prepare();
  }

  // Makes the tables of the first highlight while the page waits for the user.
  prepare() {
    const work = this.shown.flatMap((program) => PANES.slice(1).map((pane) => () => program.reverseOf(pane)));
    const whenIdle = window.requestIdleCallback ?? setTimeout; // Safari lacks the first
    const next = () => {
      work.shift()?.();
      if (work.length) whenIdle(next);
    };
    whenIdle(next);
  }

  // The first lines in sight are those of the first expression, and of the entry of the optimised program.
  showStart() {
    const entry = this.program.data.hlo.computations?.find((c) => c.entry);
    if (entry) this.panes.hlo.top(entry.line);
    const first = Math.min(...this.program.data.spans.filter(([file]) => file === this.file[0]).map(([, line]) => line));
    if (first < Infinity) this.panes.python.top(Math.max(0, first - 2));
  }

  compareWith(value) {
    this.other = value === "" ? null : Number(value);
    this.open(this.current);
  }

  show() {
    this.grid.classList.toggle("comparing", this.other !== null);
    for (const kind of PANES) this.showPane(kind);
    this.showFacts();
    this.mark();
    if (this.query) this.search(this.query);
  }

  showPane(kind) {
    const pane = this.panes[kind];
    const programs = this.shown;
    this.pinnedLinks = null;
    const lines = programs.map((p, side) => p.lines(kind, this.file[side]));
    let pairs = null;
    if (programs.length > 1) {
      pane.keys = lines.map((each) => each.map((line) => keyOf(kind, line)));
      pairs = align(pane.keys[0], pane.keys[1]);
    }
    const notes = programs.map((p, side) => this.noteOf(p, kind, side)).filter(Boolean);
    pane.show({ programs, file: [...this.file], lines, pairs, note: [...new Set(notes)].join(" · ") });
    pane.total = this.countOf(kind, pairs, pane, lines);
    pane.count.textContent = pane.total;
    if (kind === "python") this.showFiles(pane);
  }

  countOf(kind, pairs, pane, lines) {
    if (!pairs) return counted(lines[0].length, "line");
    const differing = pairs.filter(([a, b]) => a < 0 || b < 0 || pane.keys[0][a] !== pane.keys[1][b]).length;
    return differing ? `${differing.toLocaleString("en")} of ${pairs.length.toLocaleString("en")} lines differ` : "no difference";
  }

  noteOf(program, kind, side) {
    if (kind !== "python") return program.data[kind].missing || (program.lines(kind).length ? "" : "There is nothing to show.");
    const file = program.files[this.file[side]];
    if (!file) return "No Python source is known: the function has no equations from the user's code.";
    return [file.missing && `${baseName(file.name)}: ${file.missing}`, file.changed && `${baseName(file.name)}: ${file.changed}`]
      .filter(Boolean).join(" · ");
  }

  showFiles(pane) {
    const files = [...new Set(this.shown.flatMap((p) => p.ownFiles()))];
    pane.tabs.replaceChildren(...files.map((number) => {
      const file = this.data.files[number];
      return el("button", { class: "tab", title: file.name, "data-file": number, "aria-pressed": String(this.file[0] === number),
        onclick: () => this.openFile(number) }, baseName(file.name), el("span", { class: "badge", hidden: true }));
    }));
    pane.tabs.hidden = files.length < 1;
  }

  openFile(number) {
    this.file = this.shown.map(() => number);
    this.showPane("python");
    this.mark();
    if (this.query) this.search(this.query);
  }

  // Of two programs, what differs is told of both, the left one first.
  showFacts() {
    const [own, other] = this.shown.map((program) => this.factsOf(program));
    const rows = own.map(([name, value, title]) => {
      const second = other?.find((row) => row[0] === name);
      return !second || second[1] === value ? [name, value, title] : [name, `${value} | ${second[1]}`, title && `${title}\n|\n${second[2]}`];
    });
    if (other) rows.unshift(["left | right", this.shown.map((p) => p.name).join(" | ")]);
    this.facts.replaceChildren(...rows.map(([name, value, title]) =>
      el("span", { class: value.length > 30 ? "fact long" : "fact", title }, el("b", {}, name), ` ${value}`)));
  }

  factsOf({ data }) {
    const facts = [];
    const fact = (...row) => facts.push(row);
    fact("target", data.device ? `${data.target} · ${data.device.name}` : data.target);
    fact("arguments", shorten(data.arguments.map((a) => `${a.path}: ${a.type}`), 3), data.arguments.map((a) => `${a.path}: ${a.type}`).slice(0, 60).join("\n"));
    fact("results", shorten(data.results, 3), data.results.slice(0, 60).join("\n"));
    if (data.cost) {
      fact("operations", flops(data.cost.flops));
      fact("traffic", bytes(data.cost.bytes));
      fact("at best", seconds(data.cost.seconds), data.device.assumed ? "The peaks of this device are assumed" : undefined);
    }
    if (data.memory) fact("memory", bytes(data.memory.peak), "The most that the program takes; Costs shows when and for what");
    if (data.collectives.length) fact("collectives", String(data.collectives.length));
    return facts;
  }

  // Pointing

  hover(pane, side, line, column, event) {
    const place = { pane: pane.kind, side, line, column, file: this.file[side] };
    const before = this.hovered;
    if (!before || before.pane !== place.pane || before.line !== line || before.side !== side || before.column !== column) {
      this.hovered = place;
      const key = this.originsAt(place).join();
      if (key !== this.hoverKey || !before || before.line !== line || before.pane !== place.pane) {
        this.hoverKey = key;
        this.mark();
        this.describe(place);
      } else if (column !== before.column) this.describe(place);
      this.showCard(place, event);
    }
  }

  leave() {
    if (!this.hovered) return;
    this.hovered = null;
    this.hoverKey = "";
    this.card.hidden = true;
    clearTimeout(this.cardTimer);
    this.mark();
    this.describe(this.pinned);
  }

  pick(pane, side, line, column = null) {
    const place = { pane: pane.kind, side, line, column, file: this.file[side] };
    pane.cursor = pane.rowOf[side].get(line) ?? -1;
    const same = this.pinned && this.pinned.pane === pane.kind && this.pinned.line === line && this.pinned.side === side &&
      this.originsAt(this.pinned).join() === this.originsAt(place).join();
    this.pin(same ? null : place);
  }

  pin(place, { scroll = true } = {}) {
    this.pinned = place;
    this.pinnedLinks = null;
    this.mark();
    this.describe(place ?? this.hovered);
    if (place && scroll) this.scrollTo(place);
    const address = place ? formatAddress({
      program: place.side ? this.other : this.current, pane: place.pane, line: place.line,
      file: baseName(this.data.files[place.file]?.name ?? ""),
      name: place.pane === "hlo" ? this.shown[place.side].instructionByLine.get(place.line)?.name : undefined,
    }) : " ";
    try {
      history.replaceState(null, "", place ? address : location.pathname + location.search);
    } catch {
      // In a frame without an address of its own there is none to change.
    }
  }

  originsAt(place) {
    return this.shown[place.side]?.originsAt(place.pane, place.line, { file: place.file, column: place.column }) ?? [];
  }

  // The lines of each pane that belong to a place, and the ranges of columns in Python.
  linked(place) {
    const lines = Object.fromEntries(PANES.map((kind) => [kind, this.shown.map(() => [])]));
    const ranges = this.shown.map(() => new Map());
    if (!place) return { lines, ranges, files: new Set() };
    const program = this.shown[place.side];
    const origins = new Set(this.originsAt(place));
    for (const kind of PANES) lines[kind][place.side] = program.linesOf(kind, origins, this.file[place.side]);
    ranges[place.side] = program.rangesOf(this.file[place.side], origins);
    const own = lines[place.pane][place.side];
    if (origins.size && !own.includes(place.line)) own.push(place.line);
    if (this.other !== null) {
      // What stands beside a marked line is marked, too.
      for (const kind of PANES) {
        const rows = this.panes[kind].rowOf[place.side];
        for (const line of lines[kind][place.side]) {
          const partner = this.panes[kind].rows[rows.get(line)]?.[1 - place.side] ?? -1;
          if (partner >= 0) lines[kind][1 - place.side].push(partner);
        }
      }
    }
    return { lines, ranges, files: program.filesOf(origins) };
  }

  mark() {
    const hovered = this.linked(this.hovered);
    const pinned = (this.pinnedLinks ??= this.linked(this.pinned));
    const two = (each) => (each.length > 1 ? each : [...each, []]);
    for (const kind of PANES) {
      const pane = this.panes[kind];
      const maps = (marks) => (kind === "python" ? marks.ranges : null);
      pane.setMarks("hover", two(hovered.lines[kind]), maps(hovered));
      if (pane.pinnedLinks !== pinned) pane.setMarks("pinned", two(pinned.lines[kind]), maps(pinned));
      pane.pinnedLinks = pinned;
      const shownMarks = this.hovered ? hovered : pinned;
      const count = shownMarks.lines[kind].reduce((sum, each) => sum + each.length, 0);
      pane.count.textContent = this.hovered || this.pinned ? `${count.toLocaleString("en")} linked` : pane.total;
      pane.element.classList.toggle("unlinked", Boolean(this.hovered || this.pinned) && !count);
    }
    this.marked = { hovered, pinned };
    for (const tab of this.panes.python.tabs.children) {
      const files = (this.hovered ? hovered : pinned).files;
      tab.querySelector(".badge").hidden = !files.has(Number(tab.dataset.file));
    }
  }

  // Shows the first linked line of every other pane, in the file that it is in.
  scrollTo(place) {
    const program = this.shown[place.side];
    const origins = new Set(this.originsAt(place));
    if (place.pane !== "python") {
      const files = program.filesOf(origins);
      if (files.size && !files.has(this.file[place.side])) {
        this.file[place.side] = [...files][0];
        this.showPane("python");
        this.mark();
      }
    }
    const { lines } = this.linked(place);
    for (const kind of PANES) {
      const line = kind === place.pane ? place.line : nearest(heaviest(program, kind, lines[kind][place.side]), this.panes[kind], place.side);
      if (line !== undefined) this.panes[kind].reveal(line, place.side);
    }
  }

  goTo({ pane, line, file, side = 0 }) {
    if (pane === "python" && file !== undefined && this.file[side] !== file) this.openFile(file);
    const place = { pane, side, line, column: null, file: this.file[side] };
    this.panes[pane].cursor = this.panes[pane].rowOf[side].get(line) ?? -1;
    this.pin(place);
  }

  followAddress() {
    const address = parseAddress(location.hash);
    if (!address) return;
    if (!this.programs[address.program]) {
      this.tellMissing();
      return;
    }
    if (address.program !== this.current) this.open(address.program);
    if (address.pane === "python") {
      const file = this.data.files.findIndex((f) => f.name === address.file || baseName(f.name) === address.file);
      if (file >= 0) this.goTo({ pane: "python", line: address.line, file });
      else this.tellMissing();
    } else {
      const line = address.name !== undefined ? this.program.instructionByName.get(address.name)?.line : address.line;
      if (line !== undefined && line < this.program.lines(address.pane).length) this.goTo({ pane: address.pane, line });
      else this.tellMissing();
    }
  }

  tellMissing() {
    this.status.replaceChildren(el("span", {}, `The address names ${decodeURIComponent(location.hash.slice(1))}, which is not on this page.`));
  }

  // Telling

  facetsOf(place) {
    const program = this.shown[place.side];
    const origins = this.originsAt(place);
    const facets = [];
    const lines = program.lines(place.pane, place.file);
    const word = place.column === null ? null : nameAt(place.pane, lines[place.line], place.column);
    const bound = word && typeOf(place.pane, lines, word, place.line);
    if (bound) facets.push([word, bound.type.replace(/^:/, "")]);
    const instruction = place.pane === "hlo" ? program.instructionByLine.get(place.line) : null;
    if (instruction) {
      facets.push(["instruction", `${instruction.name}, ${instruction.opcode}`]);
      const own = typeOf("hlo", lines, `%${instruction.name}`, place.line);
      if (own && own.line === place.line && own.type !== bound?.type) facets.push(["type", own.type]);
      facets.push(["linked by", HOW[instruction.how] ?? instruction.how]);
    }
    const first = origins.map((i) => program.origins[i]);
    const names = [...new Set(first.map((o) => (o.kind === "argument" ? `argument ${o.name}: ${o.type}` : o.name)))];
    if (names.length) facets.push([first[0].kind === "argument" ? "argument" : "from", shorten(names.map((n) => n.replace(/^argument /, "")), 6)]);
    const equations = origins.filter((i) => program.origins[i].kind === "equation");
    const types = place.pane === "python" ? program.typesOf(equations) : [];
    if (types.length) facets.push(["gives", shorten(types, 6)]);
    const scopes = [...new Set(first.map((o) => o.scope).filter(Boolean))];
    if (scopes.length) facets.push(["within", shorten(scopes, 3)]);
    const places = [...new Set(first.map((o) => o.span).filter((s) => s !== undefined).map((s) => {
      const [file, line, , , , name] = program.data.spans[s];
      return `${baseName(program.files[file].name)}:${line} (${name})`;
    }))];
    if (places.length && place.pane !== "python") facets.push(["line", shorten(places, 4)]);
    const cost = program.costOf(place.pane, place.line, place.file);
    if (cost) {
      facets.push(["cost", `${flops(cost[0])}, ${bytes(cost[1])}, ${seconds(cost[2])} at best, ${percent(cost[2] / (program.data.cost.seconds || 1))}`]);
    }
    if (!origins.length && !facets.length) return [];
    if (!origins.length && place.pane !== "python") facets.push(["linked by", "nothing: no line is known"]);
    return facets;
  }

  describe(place) {
    const facets = place ? this.facetsOf(place) : [];
    this.status.replaceChildren(
      ...(place ? [el("b", {}, `${TITLES[place.pane]} ${place.line + 1}`)] : [el("span", {}, "Point at a line to see what it comes from and becomes. Click to pin it. ? shows the keys.")]),
      ...facets.map(([name, value]) => el("span", { class: "facet" }, el("i", {}, name), ` ${value}`)),
    );
  }

  showCard(place, event) {
    clearTimeout(this.cardTimer);
    this.card.hidden = true;
    if (!event) return;
    const [x, y] = [event.clientX, event.clientY];
    this.cardTimer = setTimeout(() => {
      const facets = this.facetsOf(place);
      if (!facets.length) return;
      this.card.replaceChildren(el("dl", {}, ...facets.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
      this.card.hidden = false;
      const box = this.card.getBoundingClientRect();
      this.card.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
      this.card.style.top = `${y + 22 + box.height > innerHeight ? Math.max(8, y - box.height - 14) : y + 22}px`;
    }, 350);
  }

  // Searching

  search(query) {
    this.query = query;
    this.found = [];
    this.at = -1;
    for (const kind of PANES) {
      const pane = this.panes[kind];
      const lines = this.shown.map((p, side) => search(p.lines(kind, this.file[side]), query));
      pane.setMarks("found", lines.length > 1 ? lines : [...lines, []]);
      const add = (each, side, file) => each.forEach((line) => this.found.push([kind, side, line, file]));
      lines.forEach((each, side) => add(each, side, this.file[side]));
      if (kind !== "python") continue;
      for (const file of this.program.ownFiles()) if (file !== this.file[0]) add(search(this.program.lines(kind, file), query), 0, file);
    }
    this.results.textContent = query ? (this.found.length ? `${this.found.length.toLocaleString("en")} found` : "nothing found") : "";
  }

  nextFound(step) {
    if (!this.found.length) return;
    this.at = (this.at + step + this.found.length) % this.found.length;
    const [kind, side, line, file] = this.found[this.at];
    if (kind === "python" && file !== this.file[side]) {
      this.file = this.shown.map(() => file);
      this.showPane("python");
      this.panes.python.setMarks("found", this.shown.map((p) => search(p.lines("python", file), this.query)).concat([[]]).slice(0, 2));
    }
    const pane = this.panes[kind];
    if (pane.element.classList.contains("collapsed")) this.collapse(pane);
    pane.reveal(line, side);
    pane.cursor = pane.rowOf[side].get(line) ?? -1;
    this.results.textContent = `${this.at + 1} of ${this.found.length}`;
    this.pin({ pane: kind, side, line, column: null, file: this.file[side] });
  }

  // Keys

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const sheet = document.querySelector("dialog[open]");
    if (sheet) {
      // The browser's own closing comes after the next key of a fast typist.
      if (event.key === "Escape") {
        sheet.close();
        event.preventDefault();
      }
      return;
    }
    // A sheet's own box may have the focus until the next frame after the sheet has closed.
    if (event.target === this.input || event.target === this.compare) return;
    const pane = this.panes[event.target.closest?.("[data-pane]")?.dataset.pane];
    if (this.act(event.key, pane, event)) event.preventDefault();
  }

  act(key, pane, event) {
    if (pane && event.target === pane.scroll) {
      const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 };
      if (key in steps) {
        pane.moveCursor(steps[key]);
        const [side, line] = pane.cursorPlace;
        this.card.hidden = true;
        this.hovered = null;
        this.hover(pane, side, line, null, null);
        return true;
      }
      const place = pane.cursorPlace;
      if (place && (key === "Enter" || key === " ")) {
        this.pick(pane, ...place);
        return true;
      }
      if (place && !pane.pairs && (key === "ArrowLeft" || key === "ArrowRight")) {
        if (pane.folds[place[1]] && pane.folded.has(place[1]) === (key === "ArrowRight")) pane.toggleFold(place[1]);
        return true;
      }
      if (key === "[" || key === "]") {
        const next = PANES[(PANES.indexOf(pane.kind) + (key === "]" ? 1 : PANES.length - 1)) % PANES.length];
        const line = this.marked.hovered.lines[next].flat()[0] ?? this.marked.pinned.lines[next].flat()[0];
        this.focusPane(next, line);
        return true;
      }
    }
    const actions = {
      "/": () => this.input.focus(),
      n: () => this.nextFound(1), N: () => this.nextFound(-1),
      g: () => this.openGraph(), c: () => this.showCosts(), t: () => this.toggleTheme(),
      "?": () => this.help.showModal(), p: () => this.open((this.current + 1) % this.programs.length),
      d: () => this.programs.length > 1 && this.compareWith(this.other === null ? String((this.current + 1) % this.programs.length) : ""),
      Escape: () => { this.hovered = null; this.pin(null); },
    };
    if (/^[1-4]$/.test(key)) actions[key] = () => this.focusPane(PANES[Number(key) - 1]);
    if (!Object.hasOwn(actions, key)) return false;
    actions[key]();
    return true;
  }

  focusPane(kind, line) {
    const pane = this.panes[kind];
    if (pane.element.classList.contains("collapsed")) this.collapse(pane);
    pane.scroll.focus();
    if (line !== undefined) {
      pane.setCursor(pane.rowOf[0].get(line) ?? 0);
      this.hovered = null;
      this.hover(pane, 0, line, null, null);
    }
  }

  // Appearance

  collapse(pane) {
    const collapsed = pane.element.classList.toggle("collapsed");
    pane.element.querySelector(".fold-pane").setAttribute("aria-expanded", String(!collapsed));
    pane.element.querySelector(".fold-pane > span").textContent = collapsed ? "▸" : "▾";
    for (const kind of PANES) this.grid.classList.toggle(`no-${kind}`, this.panes[kind].element.classList.contains("collapsed"));
  }

  openGraph() {
    this.graph.open(this.program, new Set(this.marked.pinned.lines.hlo[0]));
  }

  showCosts() {
    this.costs?.remove();
    this.costs = costSheet(this.program, { goTo: (place) => this.goTo(place) });
    document.body.append(this.costs);
    this.costs.showModal();
  }

  setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
  }

  toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remember("theme", root.dataset.theme);
    for (const kind of PANES) this.panes[kind].draw(true);
  }

  print(printing) {
    for (const kind of PANES) {
      this.panes[kind].printing = printing;
      this.panes[kind].stale = true;
      this.panes[kind].drawNow();
    }
  }
}

const HOW = {
  metadata: "XLA's metadata",
  argument: "the argument's name",
  fused: "what is fused in it",
  caller: "what calls it",
  users: "what reads it",
  operands: "what it reads",
  none: "nothing",
};

function shorten(texts, most) {
  const shown = texts.slice(0, most).join(", ");
  return texts.length > most ? `${shown} and ${texts.length - most} more` : shown || "none";
}

// Of the optimised program the lines that take time, the one that takes most first: constants are of little interest.
// Those of the entry are shown rather than what is inside of fusions.
function heaviest(program, kind, lines) {
  if (kind !== "hlo") return lines;
  const seconds = (line) => program.instructionByLine.get(line)?.seconds ?? 0;
  const all = lines.filter((line) => seconds(line) > 0);
  const entry = program.data.hlo.computations?.find((c) => c.entry);
  const own = all.filter((line) => entry && entry.line <= line && line <= entry.end);
  const heavy = own.length ? own : all;
  return heavy.length ? heavy.sort((a, b) => seconds(b) - seconds(a)) : lines;
}

// Of lines the one in sight, or else the first.
function nearest(lines, pane, side) {
  const [top, bottom] = [pane.scroll.scrollTop / 19, (pane.scroll.scrollTop + pane.scroll.clientHeight) / 19];
  return lines.find((line) => { const row = pane.rowOf[side].get(line); return row >= top && row < bottom - 1; }) ?? lines[0];
}

function remembered(name) {
  try {
    return localStorage.getItem(`xtrace-explorer-${name}`);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`xtrace-explorer-${name}`, value);
  } catch {
    // A page in a frame has no memory.
  }
}

const app = new App(document.getElementById("app"), JSON.parse(document.getElementById("data").textContent));
// For scripts and tests: what is marked, by pane.
window.xtraceExplorer = {
  app,
  marked: (kind) => Object.fromEntries(PANES.map((pane) => [pane, app.marked[kind].lines[pane].map((lines) => [...lines])])),
};
