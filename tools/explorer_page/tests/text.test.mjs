import assert from "node:assert/strict";
import test from "node:test";
import { baseName, bytes, counted, flops, percent, seconds } from "../src/format.js";
import { formatAddress, parseAddress, search } from "../src/state.js";
import { nameAt, stringLines, tokensOf, typeOf } from "../src/tokens.js";

test("addresses come back as they were", () => {
  for (const address of [
    { program: 0, pane: "hlo", line: 3, name: "fusion.12" }, { program: 2, pane: "jaxpr", line: 13 },
    { program: 0, pane: "python", file: "a b.py", line: 4 },
  ]) {
    const parsed = parseAddress(formatAddress(address));
    assert.equal(parsed.program, address.program);
    assert.equal(parsed.pane, address.pane);
    if (address.name) assert.equal(parsed.name, address.name);
    else assert.equal(parsed.line, address.line);
  }
  assert.equal(parseAddress("#hlo:fusion.12").name, "fusion.12");
  for (const text of ["", "#", "#top", "#%zz", "#jaxpr:b", "#python:a.py"]) assert.equal(parseAddress(text), null);
});

test("search is for text, or for a pattern between slashes", () => {
  const lines = ["Tanh x", "sin y", "tan(h"];
  assert.deepEqual(search(lines, "TAN"), [0, 2]);
  assert.deepEqual(search(lines, "tan("), [2]);
  assert.deepEqual(search(lines, "/^s.n/"), [1]);
  assert.deepEqual(search(lines, "/(/"), []);
  assert.deepEqual(search(lines, ""), []);
});

const kinds = (pane, line) => tokensOf(pane, line).map(([start, end, kind]) => `${kind}:${line.slice(start, end)}`);

test("tokens are coloured", () => {
  assert.deepEqual(kinds("python", 'return f("a#b")  # it'), ["keyword:return", "call:f", 'string:"a#b"', "comment:# it"]);
  assert.deepEqual(kinds("jaxpr", "a:f32[2,3] = sin b"), ["type::f32[2,3]", "operation:sin"]);
  assert.deepEqual(kinds("hlo", "  ROOT %dot.1 = f32[2]{0} dot(%a)"), ["keyword:ROOT", "name:%dot.1", "type:f32[2]{0}", "operation:dot", "name:%a"]);
  assert.deepEqual(kinds("stablehlo", "%0 = stablehlo.sine %arg0 : tensor<2xf32>"), ["name:%0", "operation:stablehlo.sine", "name:%arg0", "type:tensor<2xf32>"]);
});

test("strings of several lines are known", () => {
  assert.deepEqual([...stringLines(['"""One', "two", 'three"""', "four = '''5'''", "six"])], [0, 1, 1, 0, 0]);
});

test("names have the types that they were bound with", () => {
  const jaxpr = ["{ lambda ; a:f32[2] b:i32[]. let", "    c:f32[3] = sin a"];
  assert.equal(nameAt("jaxpr", jaxpr[1], jaxpr[1].length - 1), "a");
  assert.match(typeOf("jaxpr", jaxpr, "a", 1).type, /f32\[2\]/);
  assert.equal(typeOf("hlo", ["%p.1 = (f32[2]{0}, s32[]) tuple(%a)"], "%p.1", 0).type, "(f32[2]{0}, s32[])");
  assert.equal(typeOf("stablehlo", ["%0 = stablehlo.add %1, %1 : tensor<2xf32>"], "%0", 0).type, "tensor<2xf32>");
  assert.equal(typeOf("hlo", ["%p = f32[] x()"], "%q", 0), null);
});

test("numbers are short", () => {
  assert.equal(flops(1234567), "1.23 Mflop");
  assert.equal(bytes(1536), "1.5 KiB");
  assert.equal(seconds(2.5e-6), "2.5 µs");
  assert.equal(seconds(3e-10), "0.3 ns");
  assert.equal(percent(0.123), "12%");
  assert.equal(percent(0.0123), "1.2%");
});

test("names of code that is in no file are whole, and nouns agree with their numbers", () => {
  assert.deepEqual(["/a/b.py", "C:\\a\\b.py", "<stdin>", "<b>x</b>.py"].map(baseName), ["b.py", "b.py", "<stdin>", "<b>x</b>.py"]);
  assert.deepEqual([counted(1, "line"), counted(0, "line"), counted(1234, "line")], ["1 line", "0 lines", "1,234 lines"]);
});
