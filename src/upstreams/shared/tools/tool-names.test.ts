import { expect, test } from "bun:test";
import { ToolIds, ToolNames } from "./tool-names.ts";

test("a valid name is sent unchanged", () => {
  const names = new ToolNames();
  expect(names.sentNameOf("get_weather-2")).toBe("get_weather-2");
  expect(names.renamed.size).toBe(0);
});

test("an invalid name is sent as a valid one, always the same, and mapped back", () => {
  for (const name of ["", "a.b", "größe", "n".repeat(65), "💡"]) {
    const names = new ToolNames();
    const sent = names.sentNameOf(name);
    expect(sent).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(names.sentNameOf(name)).toBe(sent);
    expect(new ToolNames().sentNameOf(name)).toBe(sent);
    expect([...names.renamed]).toEqual([[sent, name]]);
  }
});

test("similar names stay distinct", () => {
  const names = new ToolNames();
  const sent = ["a.b", "a,b", "a_b"].map((name) => names.sentNameOf(name));
  expect(new Set(sent).size).toBe(3);
});

test("a valid name is renamed if another one was already sent under it", () => {
  const taken = new ToolNames().sentNameOf("a.b");
  const names = new ToolNames();
  names.sentNameOf("a.b");
  const sent = names.sentNameOf(taken);
  expect(sent).not.toBe(taken);
  expect(Object.fromEntries(names.renamed)).toEqual({ [taken]: "a.b", [sent]: taken });
});

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
