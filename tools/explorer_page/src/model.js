// The data of one program: which lines come from which origins, in every pane.

export const PANES = ["python", "jaxpr", "stablehlo", "hlo"];
export const TITLES = { python: "Python", jaxpr: "Jaxpr", stablehlo: "StableHLO", hlo: "Optimised HLO" };

const indentOf = (line) => line.length - line.trimStart().length;

export class Program {
  constructor(data, files) {
    this.data = data;
    this.files = files;
    this.name = data.name;
    this.origins = data.origins;
    this.reverse = {};
    this.instructionByLine = new Map();
    this.instructionByName = new Map();
    for (const row of data.hlo.instructions) {
      const [line, name, opcode, computation, how, flops = 0, bytes = 0, seconds = 0] = row;
      const instruction = { line, name, opcode, computation, how, flops, bytes, seconds };
      this.instructionByLine.set(line, instruction);
      this.instructionByName.set(name, instruction);
    }
    this.originsBySpan = new Map();
    data.origins.forEach((origin, i) => {
      if (origin.span !== undefined) push(this.originsBySpan, origin.span, i);
    });
    // By file and line, the spans that cover the line.
    this.spansByLine = new Map();
    data.spans.forEach(([file, line, , endLine], i) => {
      for (let n = line; n <= Math.min(endLine, line + 200); n++) push(this.spansByLine, file * 1e7 + n, i);
    });
  }

  lines(pane, file = 0) {
    return pane === "python" ? this.files[file]?.lines ?? [] : this.data[pane].lines;
  }

  // The files in which the program has spans, the one with most of them first.
  ownFiles() {
    const counts = new Map();
    for (const origin of this.origins) {
      if (origin.span === undefined) continue;
      const file = this.data.spans[origin.span][0];
      counts.set(file, (counts.get(file) ?? 0) + 1);
    }
    return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  }

  // The origins of a line; of Python those of the innermost expression at the column, all of the line without one.
  originsAt(pane, line, { file = 0, column = null } = {}) {
    if (pane !== "python") return this.data[pane].origins[line] ?? [];
    const spans = this.spansByLine.get(file * 1e7 + line + 1) ?? [];
    const at = column === null ? [] : spans.filter((s) => this.covers(s, line + 1, column));
    let chosen = spans;
    if (at.length) {
      const size = Math.min(...at.map((s) => this.sizeOf(s)));
      chosen = at.filter((s) => this.sizeOf(s) === size);
    } else {
      const starting = spans.filter((s) => this.data.spans[s][1] === line + 1);
      if (starting.length) chosen = starting;
    }
    return chosen.flatMap((s) => this.originsBySpan.get(s) ?? []);
  }

  covers(span, line, column) {
    const [, start, startColumn, end, endColumn] = this.data.spans[span];
    if (start === end && startColumn === endColumn) return true;
    return !(line === start && column < startColumn) && !(line === end && column >= endColumn);
  }

  sizeOf(span) {
    const [, start, startColumn, end, endColumn] = this.data.spans[span];
    return (end - start) * 10000 + (endColumn - startColumn || 10000);
  }

  // The lines of a pane, in order, that have one of the origins.
  linesOf(pane, origins, file = 0) {
    if (pane === "python") return [...this.rangesOf(file, origins).keys()].sort((a, b) => a - b);
    const reverse = this.reverseOf(pane);
    const found = new Set();
    for (const origin of origins) for (const line of reverse.get(origin) ?? []) found.add(line);
    return [...found].sort((a, b) => a - b);
  }

  // For each origin the lines of a pane that have it; made once.
  reverseOf(pane) {
    return (this.reverse[pane] ??= reverseOf(this.data[pane].origins));
  }

  // For each line of a file the ranges of columns that origins come from; a range without columns is the whole line.
  rangesOf(file, origins) {
    const ranges = new Map();
    const seen = new Set();
    for (const origin of origins) {
      const span = this.origins[origin]?.span;
      if (span === undefined || seen.has(span)) continue;
      seen.add(span);
      const [own, start, startColumn, end, endColumn] = this.data.spans[span];
      if (own !== file) continue;
      for (let line = start; line <= end; line++) {
        const whole = start === end && startColumn === endColumn;
        push(ranges, line - 1, [
          line === start && !whole ? startColumn : 0,
          line === end && !whole ? endColumn : Infinity,
        ]);
      }
    }
    return ranges;
  }

  // How many places a set of origins has in each file.
  filesOf(origins) {
    const files = new Set();
    for (const origin of origins) {
      const span = this.origins[origin]?.span;
      if (span !== undefined) files.add(this.data.spans[span][0]);
    }
    return files;
  }

  // The source line of the first origin that has one, as a number that is the same for the same line.
  placeOf(pane, line, file = 0) {
    if (pane === "python") return this.spansByLine.has(file * 1e7 + line + 1) ? file * 1e7 + line + 1 : null;
    for (const origin of this.data[pane].origins[line] ?? []) {
      const span = this.origins[origin]?.span;
      if (span !== undefined && this.origins[origin].kind !== "argument") {
        return this.data.spans[span][0] * 1e7 + this.data.spans[span][1];
      }
    }
    return null;
  }

  // The cost of a line: operations, bytes, seconds at best; null where there is none.
  costOf(pane, line, file = 0) {
    if (!this.data.cost) return null;
    if (pane === "hlo") {
      const found = this.instructionByLine.get(line);
      return found && (found.flops || found.bytes) ? [found.flops, found.bytes, found.seconds] : null;
    }
    if (pane === "python") {
      this.costByLine ??= new Map(this.data.lines.map(([f, n, ...cost]) => [f * 1e7 + n, cost]));
      return this.costByLine.get(file * 1e7 + line + 1) ?? null;
    }
    if (pane === "jaxpr") {
      const own = this.data.jaxpr.origins[line] ?? [];
      if (own.length !== 1 || this.firstLineOf(own[0]) !== line) return null;
      return this.origins[own[0]].cost ?? null;
    }
    return null;
  }

  // The types of the results of equations, each once, in the order of the jaxpr.
  typesOf(origins) {
    const types = new Set();
    const lines = origins.map((origin) => this.firstLineOf(origin)).filter((line) => line !== undefined);
    for (const line of lines.sort((a, b) => a - b)) {
      const bound = this.data.jaxpr.lines[line].split(" = ")[0];
      for (const match of bound.matchAll(/:(~?[a-z_]+\d*(?:_\w+)?\[[^\]\s]*\](?:\{[^}\s]*\})?)/g)) types.add(match[1]);
    }
    return [...types];
  }

  firstLineOf(origin) {
    const reverse = (this.reverse.jaxpr ??= reverseOf(this.data.jaxpr.origins));
    return reverse.get(origin)?.[0];
  }
}

export function push(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function reverseOf(originsByLine) {
  const reverse = new Map();
  originsByLine.forEach((origins, line) => {
    for (const origin of origins) push(reverse, origin, line);
  });
  return reverse;
}

// The last line inside of what begins on each line, by indentation; 0 where nothing does.
export function foldsOf(lines) {
  const ends = new Int32Array(lines.length);
  const open = [];
  let last = -1;
  const close = (indent) => {
    while (open.length && open[open.length - 1][1] >= indent) {
      const [start] = open.pop();
      if (last > start) ends[start] = last;
    }
  };
  lines.forEach((line, n) => {
    if (!line.trim()) return;
    close(indentOf(line));
    open.push([n, indentOf(line)]);
    last = n;
  });
  close(-1);
  return ends;
}
