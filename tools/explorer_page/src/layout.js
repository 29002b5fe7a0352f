// Where the nodes of a graph stand: in rows from the first instruction to the last, each near what it reads and what
// reads it.

const [HEIGHT, BETWEEN_ROWS, BETWEEN_NODES, MARGIN] = [44, 34, 22, 20];
const SWEEPS = 24;
// An edge over more rows than these goes beside the others.
const FAR = 3;

// The centres and sizes of `nodes`, {name, width} in an order in which sources come first, and the paths of `edges`,
// pairs of names.
export function layOut(nodes, edges) {
  const [before, after] = [new Map(nodes.map((n) => [n.name, []])), new Map(nodes.map((n) => [n.name, []]))];
  for (const [from, to] of edges) {
    before.get(to).push(from);
    after.get(from).push(to);
  }
  const ranks = rankNodes(nodes, before, after);
  const rows = [];
  for (const node of nodes) (rows[ranks.get(node.name)] ??= []).push(node);
  const xs = placeInRows(rows.filter(Boolean), before, after, ranks);
  const left = Math.min(...nodes.map((n) => xs.get(n.name) - n.width / 2)) - MARGIN;
  const places = new Map(nodes.map((n) => [n.name, {
    x: xs.get(n.name) - left, y: MARGIN + HEIGHT / 2 + ranks.get(n.name) * (HEIGHT + BETWEEN_ROWS), width: n.width, height: HEIGHT,
  }]));
  let right = Math.max(0, ...[...places.values()].map((p) => p.x + p.width / 2));
  const paths = edges.map(([from, to]) => {
    const span = ranks.get(to) - ranks.get(from);
    const [a, b] = [places.get(from), places.get(to)];
    if (span <= FAR) return { from, to, isFar: false, path: straight(a, b) };
    const bow = Math.max(a.x + a.width / 2, b.x + b.width / 2) + 24 + 7 * Math.min(span, 60);
    right = Math.max(right, bow);
    return { from, to, isFar: true, path: bowed(a, b, bow) };
  });
  return { width: right + MARGIN, height: 2 * MARGIN + rows.length * (HEIGHT + BETWEEN_ROWS) - BETWEEN_ROWS, places, paths };
}

// A row is one below the last source; what reads nothing stands above its first reader.
function rankNodes(nodes, before, after) {
  const ranks = new Map();
  for (const { name } of nodes) ranks.set(name, 1 + Math.max(-1, ...before.get(name).map((n) => ranks.get(n) ?? -1)));
  for (const { name } of nodes) {
    const readers = after.get(name).map((n) => ranks.get(n));
    if (!before.get(name).length && readers.length) ranks.set(name, Math.max(0, Math.min(...readers) - 1));
  }
  return ranks;
}

function placeInRows(rows, before, after, ranks) {
  const xs = new Map();
  for (const row of rows) place(row, row.map(() => 0), xs);
  const wanted = (node) => {
    let [sum, weights] = [0, 0];
    for (const other of [...before.get(node.name), ...after.get(node.name)]) {
      const weight = 1 / Math.abs(ranks.get(node.name) - ranks.get(other));
      sum += weight * xs.get(other);
      weights += weight;
    }
    return weights ? sum / weights : xs.get(node.name);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const pairs = row.map((node) => [wanted(node), node]).sort((a, b) => a[0] - b[0]);
      place(pairs.map((p) => p[1]), pairs.map((p) => p[0]), xs);
    }
  }
  return xs;
}

// Places the nodes of a row in order, without overlaps and as close as possible to where they want to be: nodes that
// would overlap form a block at the mean of their wishes.
function place(row, wishes, xs) {
  const offsets = [0];
  for (let i = 1; i < row.length; i++) offsets.push(offsets[i - 1] + (row[i - 1].width + row[i].width) / 2 + BETWEEN_NODES);
  const blocks = [];
  for (let i = 0; i < row.length; i++) {
    let block = { sum: wishes[i] - offsets[i], count: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).count >= block.sum / block.count) {
      const last = blocks.pop();
      block = { sum: last.sum + block.sum, count: last.count + block.count };
    }
    blocks.push(block);
  }
  let i = 0;
  for (const block of blocks) {
    for (const end = i + block.count; i < end; i++) xs.set(row[i].name, block.sum / block.count + offsets[i]);
  }
}

function straight(a, b) {
  const [top, bottom] = [a.y + a.height / 2, b.y - b.height / 2 - 2];
  const middle = (top + bottom) / 2;
  return `M${a.x} ${top} C${a.x} ${middle} ${b.x} ${middle} ${b.x} ${bottom}`;
}

function bowed(a, b, bow) {
  const [start, end] = [a.x + a.width / 2, b.x + b.width / 2 + 2];
  const reach = Math.min(60, (b.y - a.y) / 3);
  return `M${start} ${a.y} C${bow} ${a.y} ${bow} ${a.y} ${bow} ${a.y + reach} L${bow} ${b.y - reach} C${bow} ${b.y} ${bow} ${b.y} ${end} ${b.y}`;
}
