import { expect, test } from "bun:test";
import { cachePoint, type ContentBlock } from "../encode/converse-body.ts";
import { limitCachePoints } from "./limit-cache-points.ts";

const marked = (text: string): ContentBlock[] => [{ text }, cachePoint];

test("four cache points stay as they are", () => {
  const contents = [[...marked("a"), ...marked("b")], marked("c"), marked("d")];
  const before = structuredClone(contents);
  limitCachePoints(contents);
  expect(contents).toEqual(before);
});

test("of more than four cache points the last four stay, with all other blocks in order", () => {
  const contents = [
    [...marked("a"), ...marked("b")],
    marked("c"),
    [...marked("d"), ...marked("e")],
  ];
  contents.push([{ text: "f" }], marked("g"));
  limitCachePoints(contents);
  expect(contents).toEqual([
    [{ text: "a" }, { text: "b" }],
    marked("c"),
    [...marked("d"), ...marked("e")],
    [{ text: "f" }],
    marked("g"),
  ]);
});

test("hundreds of thousands of cache points in one turn are removed in one pass", () => {
  const content = Array.from({ length: 400_000 }, () => marked("a")).flat();
  limitCachePoints([content]);
  expect(content.length).toBe(400_004);
  expect(content.slice(-8)).toEqual([1, 2, 3, 4].flatMap(() => marked("a")));
});

test("an hour after five minutes becomes five minutes, and an hour before them stays", () => {
  const hour = { cachePoint: { type: "default", ttl: "1h" } } as const;
  const contents: ContentBlock[][] = [[{ text: "a" }, hour], marked("b"), [{ text: "c" }, hour]];
  limitCachePoints(contents);
  expect(contents).toEqual([[{ text: "a" }, hour], marked("b"), marked("c")]);
});
