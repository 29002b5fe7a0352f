import assert from "node:assert/strict";
import test from "node:test";
import { align, keyOf } from "../src/diff.js";

const rows = (a, b) => align(a.split(""), b.split("")).map(([i, j]) => `${i < 0 ? "-" : a[i]}${j < 0 ? "-" : b[j]}`).join(" ");

test("equal lines stand beside one another", () => {
  assert.equal(rows("abc", "abc"), "aa bb cc");
  assert.equal(rows("abd", "abcd"), "aa bb -c dd");
  assert.equal(rows("xabd", "abd"), "x- aa bb dd");
  assert.equal(rows("", "ab"), "-a -b");
});

test("lines that differ stand beside one another where both sides have some", () => {
  assert.equal(rows("axc", "ayc"), "aa xy cc");
  assert.equal(rows("axxc", "ayc"), "aa xy x- cc");
});

test("repeated lines are aligned by the longest common sequence", () => {
  assert.equal(rows("xyxyx", "yxyxx"), "x- yy xx yy -x xx");
});

test("all lines of both occur once and in order, whatever they are", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 200; round++) {
    const make = () => Array.from({ length: random(30) }, () => "abcdef"[random(6)]);
    const [a, b] = [make(), make()];
    const pairs = align(a, b);
    assert.deepEqual(pairs.map((p) => p[0]).filter((i) => i >= 0), a.map((_, i) => i));
    assert.deepEqual(pairs.map((p) => p[1]).filter((i) => i >= 0), b.map((_, i) => i));
  }
});

test("large texts without a common line are aligned at once", () => {
  const make = (name) => Array.from({ length: 20000 }, (_, i) => `${name}${i % 3}`);
  assert.equal(align(make("a"), make("b")).length, 20000);
});

test("names that are numbered do not count", () => {
  assert.equal(keyOf("jaxpr", "    bc:f32[2] = sin z"), keyOf("jaxpr", "    a:f32[2] = sin y"));
  assert.notEqual(keyOf("jaxpr", "    a:f32[2] = sin y"), keyOf("jaxpr", "    a:f32[2] = cos y"));
  assert.notEqual(keyOf("jaxpr", "    a:f32[2] = sin y"), keyOf("jaxpr", "    a:f32[3] = sin y"));
  assert.equal(keyOf("stablehlo", "%12 = stablehlo.add %1, %arg3 : tensor<f32>"), keyOf("stablehlo", "%2 = stablehlo.add %7, %0 : tensor<f32>"));
  assert.equal(keyOf("hlo", "  %fusion.12 = f32[] fusion(%a.1)"), keyOf("hlo", "  %fusion.3 = f32[] fusion(%a.7)"));
});
