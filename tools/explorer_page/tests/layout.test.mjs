import assert from "node:assert/strict";
import test from "node:test";
import { layOut } from "../src/layout.js";

const nodesOf = (text) => [...text].map((name) => ({ name, width: 110 }));
const edgesOf = (text) => text.split(" ").map((pair) => [...pair]);

test("what reads stands below what it reads, and near it", () => {
  const { places } = layOut(nodesOf("abcd"), edgesOf("ab ac bd cd"));
  const y = (name) => places.get(name).y;
  assert.ok(y("a") < y("b") && y("b") === y("c") && y("c") < y("d"));
  const middle = (places.get("b").x + places.get("c").x) / 2;
  assert.ok(Math.abs(places.get("a").x - middle) < 1 && Math.abs(places.get("d").x - middle) < 1);
});

test("nodes do not overlap, and all stand within the picture", () => {
  const nodes = Array.from({ length: 200 }, (_, i) => ({ name: `n${i}`, width: 60 + (i * 37) % 150 }));
  const edges = nodes.slice(1).flatMap(({ name }, i) => [[`n${(i * 7) % (i + 1)}`, name], [`n${(i * 3) % (i + 1)}`, name]]);
  const { places, width, height } = layOut(nodes, edges);
  const all = [...places.values()];
  for (const a of all) {
    assert.ok(a.x - a.width / 2 >= 0 && a.x + a.width / 2 <= width && a.y + a.height / 2 <= height);
    for (const b of all) assert.ok(a === b || a.y !== b.y || Math.abs(a.x - b.x) >= (a.width + b.width) / 2);
  }
});

test("what reads nothing stands above its first reader, and edges over many rows go beside the others", () => {
  const { places, paths } = layOut(nodesOf("abcdez"), edgesOf("ab bc cd de ze ae"));
  assert.equal(places.get("z").y, places.get("d").y);
  assert.deepEqual(paths.filter((p) => p.isFar).map((p) => p.from + p.to), ["ae"]);
});

test("a chain with residuals is a narrow column", () => {
  const nodes = Array.from({ length: 100 }, (_, i) => ({ name: `n${i}`, width: 110 }));
  const edges = nodes.slice(1).map(({ name }, i) => [`n${i}`, name]);
  for (let i = 0; i < 45; i++) edges.push([`n${i}`, `n${99 - i}`]);
  assert.ok(layOut(nodes, edges).width < 800);
});

test("a graph may be one node, or none", () => {
  assert.equal(layOut(nodesOf("a"), []).places.size, 1);
  assert.ok(Number.isFinite(layOut([], []).width));
});
