import { expect, test } from "bun:test";
import type { ChatEvent } from "../../../domain/chat/chat.ts";
import { mostToolCalls } from "../../shared/answer-bounds.ts";
import { ToolCallTracker } from "./tool-call-tracker.ts";

/** The calls that a client assembles from the events. */
function callsOf(fragments: readonly unknown[]) {
  let ids = 0;
  const tracker = new ToolCallTracker(0, () => `new_${(ids += 1)}`);
  const events: ChatEvent[] = [];
  for (const fragment of fragments) tracker.read([fragment], events);
  tracker.finish(events);
  const calls: { id: string; kind: string; name: string; text: string }[] = [];
  for (const event of events) {
    if (event.type === "tool-call-start") {
      // Numbered without gaps, and begun once.
      expect(event.call).toBe(calls.length);
      calls.push({ id: event.id, kind: event.kind, name: event.name, text: "" });
    } else if (event.type === "tool-call-delta") {
      const call = calls[event.call];
      if (call === undefined) throw new Error("arguments of a call that has not begun");
      call.text += event.arguments;
    }
  }
  expect(tracker.count).toBe(calls.length);
  return calls;
}

const begin = (index: number | undefined, id: string | undefined, name: string, text = "") => ({
  index,
  id,
  type: "function",
  function: { name, arguments: text },
});
const more = (index: number | undefined, text: string, id?: string) => ({
  index,
  id,
  function: { arguments: text },
});
const call = (id: string, name: string, text: string) => ({ id, kind: "function", name, text });

test("parallel calls as OpenAI sends them", () => {
  const fragments = [
    begin(0, "a", "f"),
    more(0, "{1"),
    begin(1, "b", "g"),
    more(1, "{2"),
    more(1, "}"),
  ];
  expect(callsOf([...fragments, more(0, "}")])).toEqual([
    call("a", "f", "{1}"),
    call("b", "g", "{2}"),
  ]);
});

test("indexes with gaps are renumbered", () => {
  expect(
    callsOf([begin(3, "a", "f", "x"), begin(7, "b", "g"), more(7, "y"), more(3, "z")]),
  ).toEqual([call("a", "f", "xz"), call("b", "g", "y")]);
});

test("whole calls that all have index 0 are distinguished by their ids", () => {
  expect(callsOf([begin(0, "a", "f", "1"), begin(0, "b", "f", "2")])).toEqual([
    call("a", "f", "1"),
    call("b", "f", "2"),
  ]);
});

test("fragments without an index belong to the latest call", () => {
  expect(
    callsOf([
      begin(undefined, "a", "f"),
      more(undefined, "1"),
      begin(undefined, "b", "g"),
      more(undefined, "2"),
    ]),
  ).toEqual([call("a", "f", "1"), call("b", "g", "2")]);
});

test("a name or an id that every fragment repeats begins no new call", () => {
  expect(callsOf([begin(0, "a", "f", "1"), begin(0, "a", "f", "2")])).toEqual([
    call("a", "f", "12"),
  ]);
  expect(callsOf([begin(0, undefined, "f", "1"), begin(0, undefined, "f", "2")])).toEqual([
    call("new_1", "f", "12"),
  ]);
});

test("a new id in every fragment of one call begins no new call", () => {
  expect(callsOf([begin(0, "a", "f"), more(0, "1", "b"), more(0, "2", "c")])).toEqual([
    call("a", "f", "12"),
  ]);
});

test("arguments before the name wait for it, and a nameless call is not lost", () => {
  expect(callsOf([more(0, "{"), begin(0, "a", "f"), more(0, "}")])).toEqual([
    call("new_1", "f", "{}"),
  ]);
  expect(callsOf([more(0, "{}", "a")])).toEqual([call("a", "", "{}")]);
});

test("a call without an id gets a new one", () => {
  expect(callsOf([begin(0, undefined, "f"), begin(1, "", "g")]).map(({ id }) => id)).toEqual([
    "new_1",
    "new_2",
  ]);
});

test("a custom tool's input is its arguments", () => {
  const fragments = [
    { index: 0, id: "a", type: "custom", custom: { name: "sql", input: "sel" } },
    { index: 0, custom: { input: "ect" } },
  ];
  expect(callsOf(fragments)).toEqual([{ id: "a", kind: "custom", name: "sql", text: "select" }]);
});

test("arguments as an object become JSON text", () => {
  const fragment = { index: 0, id: "a", function: { name: "f", arguments: { city: "Kyiv" } } };
  expect(callsOf([fragment])).toEqual([call("a", "f", '{"city":"Kyiv"}')]);
});

test("values that are not fragments are ignored", () => {
  expect(callsOf([null, 1, "x", [], undefined, begin(0, "a", "f")])).toEqual([call("a", "f", "")]);
});

test("too many calls are a broken answer, with new or repeated numbers", () => {
  for (const indexOf of [(call: number) => call, () => 0, () => undefined]) {
    const fragments = Array.from({ length: mostToolCalls }, (_, call) =>
      begin(indexOf(call), `id_${call}`, "f"),
    );
    expect(callsOf(fragments)).toHaveLength(mostToolCalls);
    const more = [...fragments, begin(indexOf(mostToolCalls), "one too many", "f")];
    expect(() => callsOf(more)).toThrow("more than 1024 tool calls");
  }
});

test("too many characters of arguments before names are a broken answer", () => {
  const text = "x".repeat(1024 * 1024);
  const nameless = (count: number) =>
    Array.from({ length: count }, (_, index) => more(index % 2, text));
  expect(callsOf(nameless(4))).toHaveLength(2);
  expect(() => callsOf(nameless(5))).toThrow("before its name");
});
