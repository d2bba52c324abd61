import { expect, test } from "bun:test";
import { ToolIds } from "./tool-ids.ts";

test("a valid id is kept the first time, and replaced when it is repeated", () => {
  const ids = new ToolIds(false);
  expect(ids.assign("call_0")).toBe("call_0");
  const second = ids.assign("call_0");
  expect(second).toMatch(/^call_[0-9a-f]{24}$/);
  expect(new Set(["call_0", second, ids.assign("call_0")]).size).toBe(3);
});

test("an id equal to an earlier replacement is replaced", () => {
  const first = new ToolIds(false);
  const replaced = first.assign("no id");
  expect(first.assign(replaced)).not.toBe(replaced);
});

test("the same ids in the same order are sent equally", () => {
  const ids = ["call_0", "call_0", "x y", "call_0", "", ""];
  for (const isNineCharacters of [true, false]) {
    const one = new ToolIds(isNineCharacters);
    const other = new ToolIds(isNineCharacters);
    const sent = ids.map((id) => one.assign(id));
    expect(ids.map((id) => other.assign(id))).toEqual(sent);
    expect(new Set(sent).size).toBe(ids.length);
  }
});

test.each([true, false])("a very often repeated id is hashed once each time (%p)", (nine) => {
  const ids = new ToolIds(nine);
  const sent = new Set<string>();
  for (let count = 0; count < 50_000; count += 1) sent.add(ids.assign("call_0"));
  expect(sent.size).toBe(50_000);
});
