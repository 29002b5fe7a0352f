// Aligns the lines of two texts: lines that occur once in both are anchors, and what lies between them is compared.

// A line without the names that the compilers number, so that one new line does not change all that follow.
export function keyOf(pane, line) {
  if (pane === "jaxpr") {
    return line.replace(/\b[a-z]{1,4}(?=:[a-z~]+\d*\[)/g, "_").replace(/(?<!=)([ (,])[a-z]{1,4}(?=[ ,)]|$)/g, "$1_");
  }
  if (pane === "stablehlo") return line.replace(/%(\d+|arg\d+|iterArg\w*)(:\d+|#\d+)?/g, "%");
  if (pane === "hlo") return line.replace(/%?([A-Za-z_][\w-]*)((?:\.\w+)+)(?=[ ,)]|$)/g, "%$1").replace(/^%/, "");
  return line;
}

// Pairs of line numbers, [a, b]: -1 where one text has no such line.
export function align(a, b) {
  const rows = [];
  compare(a, b, 0, a.length, 0, b.length, rows, 0);
  return rows;
}

function compare(a, b, a0, a1, b0, b1, rows, depth) {
  while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) rows.push([a0++, b0++]);
  const tail = [];
  while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) tail.push([--a1, --b1]);
  if (a0 < a1 && b0 < b1) {
    const anchors = depth < 40 ? anchorsOf(a, b, a0, a1, b0, b1) : [];
    if (anchors.length) {
      let [x, y] = [a0, b0];
      for (const [i, j] of anchors) {
        compare(a, b, x, i, y, j, rows, depth + 1);
        rows.push([i, j]);
        [x, y] = [i + 1, j + 1];
      }
      compare(a, b, x, a1, y, b1, rows, depth + 1);
    } else if ((a1 - a0) * (b1 - b0) <= 250000) longest(a, b, a0, a1, b0, b1, rows);
    else replace(a0, a1, b0, b1, rows);
  } else replace(a0, a1, b0, b1, rows);
  for (let i = tail.length - 1; i >= 0; i--) rows.push(tail[i]);
}

// The longest increasing sequence of pairs of lines that are unique in both parts.
function anchorsOf(a, b, a0, a1, b0, b1) {
  const seen = new Map();
  const note = (text, side, place) => {
    const entry = seen.get(text) ?? { counts: [0, 0], places: [0, 0] };
    entry.counts[side]++;
    entry.places[side] = place;
    seen.set(text, entry);
  };
  for (let i = a0; i < a1; i++) note(a[i], 0, i);
  for (let j = b0; j < b1; j++) note(b[j], 1, j);
  const pairs = [...seen.values()]
    .filter((e) => e.counts[0] === 1 && e.counts[1] === 1)
    .map((e) => e.places)
    .sort((p, q) => p[0] - q[0]);
  const tops = [];
  const before = new Array(pairs.length).fill(-1);
  pairs.forEach(([, j], n) => {
    let low = 0;
    let high = tops.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[tops[middle]][1] < j) low = middle + 1;
      else high = middle;
    }
    if (low) before[n] = tops[low - 1];
    tops[low] = n;
  });
  const found = [];
  for (let n = tops.length ? tops[tops.length - 1] : -1; n >= 0; n = before[n]) found.push(pairs[n]);
  return found.reverse();
}

function longest(a, b, a0, a1, b0, b1, rows) {
  const [height, width] = [a1 - a0, b1 - b0];
  const table = new Uint16Array((height + 1) * (width + 1));
  for (let i = height - 1; i >= 0; i--) {
    for (let j = width - 1; j >= 0; j--) {
      const at = i * (width + 1) + j;
      table[at] =
        a[a0 + i] === b[b0 + j] ? table[at + width + 2] + 1 : Math.max(table[at + width + 1], table[at + 1]);
    }
  }
  let [i, j, x, y] = [0, 0, 0, 0];
  while (i < height && j < width) {
    const at = i * (width + 1) + j;
    if (a[a0 + i] === b[b0 + j]) {
      replace(a0 + x, a0 + i, b0 + y, b0 + j, rows);
      rows.push([a0 + i++, b0 + j++]);
      [x, y] = [i, j];
    } else if (table[at + width + 1] >= table[at + 1]) i++;
    else j++;
  }
  replace(a0 + x, a1, b0 + y, b1, rows);
}

// Lines that differ stand beside one another as far as there are some on both sides.
function replace(a0, a1, b0, b1, rows) {
  for (; a0 < a1 || b0 < b1; ) rows.push([a0 < a1 ? a0++ : -1, b0 < b1 ? b0++ : -1]);
}
