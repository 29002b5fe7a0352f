import assert from "node:assert/strict";
import test from "node:test";
import { foldsOf, Program } from "../src/model.js";

const files = [{ name: "a.py", lines: ["def f(x):", "    return g(x) + 1"], missing: "", changed: "" }];
const data = {
  name: "f", target: "cpu", cost: { flops: 2, bytes: 8, seconds: 1 },
  spans: [[0, 2, 11, 2, 15, "f"], [0, 2, 11, 2, 19, "f"], [0, 1, 0, 1, 0, "f"]],
  origins: [
    { kind: "equation", name: "g", span: 0 }, { kind: "equation", name: "add", span: 1, cost: [1, 2, 0.5] },
    { kind: "argument", name: "x", span: 2 },
  ],
  lines: [[0, 2, 1, 2, 0.5, 0.5]],
  jaxpr: { lines: ["{ lambda ; a. let", "  b = g a", "  c = add b 1", "in (c,) }"], origins: [[2], [0], [1], []] },
  stablehlo: { lines: ["m", "g", "add"], origins: [[], [0], [1]] },
  hlo: { lines: ["e", "fusion"], origins: [[], [0, 1]], instructions: [[1, "fusion", "fusion", 0, "metadata", 2, 8, 1]], computations: [] },
};
const program = new Program(data, files);

test("the innermost expression at a column is chosen", () => {
  assert.deepEqual(program.originsAt("python", 1, { column: 12 }), [0]);
  assert.deepEqual(program.originsAt("python", 1, { column: 17 }), [1]);
  assert.deepEqual(program.originsAt("python", 1), [0, 1]);
  assert.deepEqual(program.originsAt("python", 0), [2]);
});

test("lines that share an origin belong together", () => {
  assert.deepEqual(program.linesOf("hlo", new Set([0])), [1]);
  assert.deepEqual(program.linesOf("stablehlo", new Set([0, 1])), [1, 2]);
  assert.deepEqual(program.originsAt("hlo", 1), [0, 1]);
  assert.deepEqual([...program.rangesOf(0, [0])], [[1, [[11, 15]]]]);
  assert.deepEqual([...program.rangesOf(0, [2])], [[0, [[0, Infinity]]]]);
});

test("an expression has the types of its equations' results", () => {
  const typed = new Program({ ...data, jaxpr: { lines: ["{ lambda ; a:f32[2]. let", "  b:f32[2] c:i32[3@x]{V:y} = g a", "  d:f32[2] = add b 1"], origins: [[2], [0], [1]] } }, files);
  assert.deepEqual(typed.typesOf([1, 0]), ["f32[2]", "i32[3@x]{V:y}"]);
});

test("costs stand where they belong", () => {
  assert.deepEqual(program.costOf("hlo", 1), [2, 8, 1]);
  assert.deepEqual(program.costOf("python", 1), [1, 2, 0.5, 0.5]);
  assert.deepEqual(program.costOf("jaxpr", 2), [1, 2, 0.5]);
  assert.equal(program.costOf("jaxpr", 0), null);
});

test("folds end before the next line that is no further in, and hold no trailing blank lines", () => {
  assert.deepEqual([...foldsOf(["a", "  b", "    c", "", "d", "", ""])], [2, 2, 0, 0, 0, 0, 0]);
});
