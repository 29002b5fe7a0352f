// Numbers as people read them.

const UNITS = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

export function count(value) {
  for (const [scale, unit] of UNITS) if (value >= scale) return `${short(value / scale)} ${unit}`;
  return short(value) + " ";
}

export const flops = (value) => `${count(value)}flop`;

export function bytes(value) {
  for (const [scale, unit] of [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ]) {
    if (value >= scale) return `${short(value / scale)} ${unit}`;
  }
  return `${short(value)} B`;
}

export function seconds(value) {
  for (const [scale, unit] of [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
  ]) {
    if (value >= scale) return `${short(value / scale)} ${unit}`;
  }
  return `${short(value * 1e9)} ns`;
}

export const percent = (share) => (share >= 0.0995 ? `${Math.round(share * 100)}%` : `${(share * 100).toFixed(1)}%`);

const short = (value) => String(Number(value.toPrecision(3)));

// Names such as <string> and <script>x</script> are none of files.
export const baseName = (path) => (path.startsWith("<") ? path : path.split(/[\\/]/).pop() || path);

export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
