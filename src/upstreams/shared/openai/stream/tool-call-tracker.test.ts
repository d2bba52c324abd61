import { expect, test } from "bun:test";
import type { ChatEvent } from "../../../../domain/chat/answer.ts";
import { mostToolCalls } from "../../collect-answer.ts";
import { answerServices } from "../../../../../test/support/answer-decoding.ts";
import { ToolCallTracker } from "./tool-call-tracker.ts";

/** The calls that a client assembles from the events. */
function callsOf(fragments: readonly unknown[]) {
  const tracker = new ToolCallTracker(0, answerServices(), new Set());
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
  expect(callsOf([more(0, "{"), begin(0, "a", "f"), more(0, "}")])).toEqual([call("a", "f", "{}")]);
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

test("a name after complete arguments begins a call, and so do more arguments after it", () => {
  const both = [call("new_1", "f", '{"a":1}'), call("new_2", "f", '{"a":2}')];
  for (const index of [0, undefined]) {
    const first = begin(index, undefined, "f", '{"a":1}');
    expect(callsOf([first, begin(index, undefined, "f", '{"a":2}')])).toEqual(both);
    expect(callsOf([first, begin(index, " ", "f"), more(index, '{"a":2}')])).toEqual(both);
    // In pieces; braces within a text do not end it.
    const pieces = [begin(index, "", "f", '{"a":"}'), more(index, '\\"}"'), more(index, "}")];
    expect(callsOf([...pieces, begin(index, "", "g", "{}")])).toEqual([
      call("new_1", "f", '{"a":"}\\"}"}'),
      call("new_2", "g", "{}"),
    ]);
  }
});

test("a list names each call once, also where no call has arguments", () => {
  const events: ChatEvent[] = [];
  const tracker = new ToolCallTracker(0, answerServices(), new Set());
  tracker.read([begin(0, "", "f"), begin(0, "", "f"), begin(0, "", "f")], events);
  tracker.read([begin(0, "", "f", "{}")], events);
  expect(tracker.count).toBe(3);
});

test("a name that is repeated with nothing more begins no call", () => {
  for (const id of ["a", undefined]) {
    const fragments = [begin(0, id, "f", '{"a":'), begin(0, id, "f", "1}"), begin(0, id, "f")];
    expect(callsOf(fragments)).toEqual([call(id ?? "new_1", "f", '{"a":1}')]);
  }
  // A server that repeats the whole call at the end.
  const whole = begin(0, "a", "f", '{"a":1}');
  expect(callsOf([whole, whole])).toEqual([call("a", "f", '{"a":1}')]);
});

test("one id with two names, two numbers or two arguments is two calls with two ids", () => {
  expect(callsOf([begin(0, "a", "f", "{}"), begin(0, "a", "g", "{}")])).toEqual([
    call("a", "f", "{}"),
    call("new_1", "g", "{}"),
  ]);
  expect(callsOf([begin(0, "a", "f", '{"a":1}'), begin(0, "a", "f", '{"a":2}')])).toEqual([
    call("a", "f", '{"a":1}'),
    call("new_1", "f", '{"a":2}'),
  ]);
  const interleaved = [begin(0, "a", "f"), begin(1, "a", "f"), more(0, "{1", "a"), more(1, "{2")];
  expect(callsOf([...interleaved, more(0, "}", "a"), more(1, "}", "a")])).toEqual([
    call("a", "f", "{1}"),
    call("new_1", "f", "{2}"),
  ]);
});

test("an id that comes after its call has begun begins no other", () => {
  expect(callsOf([begin(0, undefined, "f"), begin(0, "a", "f", "{}")])).toEqual([
    call("new_1", "f", "{}"),
  ]);
});

test("a new id after complete arguments begins a call, also without a name", () => {
  const calls = callsOf([begin(0, "a", "f", "{}"), more(0, '{"a":1}', "b")]);
  expect(calls.map(({ id, text }) => [id, text])).toEqual([
    ["a", "{}"],
    ["b", '{"a":1}'],
  ]);
});

test("interleaved calls are told apart by id, where all have one number, and by number", () => {
  const expected = [call("a", "f", '{"a":1}'), call("b", "f", '{"a":2}')];
  for (const [one, two] of [
    [0, 0],
    [undefined, undefined],
    [1, 0],
  ]) {
    expect(
      callsOf([
        begin(one, "a", "f", '{"a"'),
        begin(two, "b", "f", '{"a"'),
        more(one, ":1}", "a"),
        more(two, ":2}", "b"),
      ]),
    ).toEqual(expected);
  }
});

test("empty arguments before others are none", () => {
  const begun = begin(0, "a", "f", "{}");
  expect(callsOf([begun])).toEqual([call("a", "f", "{}")]);
  expect(callsOf([begun, more(0, ""), more(0, " ")])).toEqual([call("a", "f", " {}")]);
  expect(callsOf([begun, more(0, '{"a"'), more(0, ":1}")])).toEqual([call("a", "f", '{"a":1}')]);
  expect(callsOf([begun, begin(1, "b", "g", "{}"), more(1, '{"b":2}')])).toEqual([
    call("a", "f", "{}"),
    call("b", "g", '{"b":2}'),
  ]);
});
