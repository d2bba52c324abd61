import { expect, test } from "bun:test";
import { ToolNames } from "./tool-names.ts";

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
