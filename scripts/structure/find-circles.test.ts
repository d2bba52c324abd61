import { expect, test } from "bun:test";
import { findCircles } from "./find-circles.ts";

function graph(edges: Readonly<Record<string, readonly string[]>>) {
  return new Map(Object.entries(edges).map(([node, next]) => [node, new Set(next)]));
}

test("a graph without a path back has no circle", () => {
  expect(findCircles(graph({ a: ["b", "c"], b: ["c"], c: [] }))).toEqual([]);
});

test("nodes that reach each other are one circle, over any distance", () => {
  expect(findCircles(graph({ a: ["b"], b: ["c"], c: ["a", "d"], d: [] }))).toEqual([
    ["a", "b", "c"],
  ]);
});

test("two circles with a connection in one direction stay two", () => {
  const found = findCircles(graph({ a: ["b"], b: ["a", "c"], c: ["d"], d: ["c"] }));
  expect(found).toHaveLength(2);
  expect(found).toContainEqual(["a", "b"]);
  expect(found).toContainEqual(["c", "d"]);
});
