import { describe, expect, test } from "bun:test";
import type { AnswerBlock, ChatEvent } from "../../domain/chat/answer.ts";
import { collectAnswer } from "./collect-answer.ts";

test("a field that JavaScript gives a meaning changes no other object", () => {
  const message = JSON.parse('{"audio":{"__proto__":{"isPolluted":true},"id":"a"}}');
  const extra = { answer: undefined, choice: undefined, message };
  const answer = collectAnswer([{ type: "text-delta", choice: 0, text: "Hi", extra }]);
  expect(answer.choices[0]?.extra?.message).toEqual({ audio: { id: "a" } });
  expect(Reflect.get({}, "isPolluted")).toBeUndefined();
});

test("a field with the name of a method is collected like any other", () => {
  const message = { toString: { constructor: "a" } };
  const extra = { answer: undefined, choice: undefined, message };
  const event = { type: "text-delta", choice: 0, text: "Hi", extra } as const;
  const answer = collectAnswer([event, event]);
  expect(JSON.stringify(answer.choices[0]?.extra?.message)).toBe(
    '{"toString":{"constructor":"aa"}}',
  );
});

function blocksOf(...events: readonly ChatEvent[]): readonly AnswerBlock[] {
  return collectAnswer(events).choices[0]?.blocks ?? [];
}

const choice = 0;
const said = (text: string): ChatEvent => ({ type: "text-delta", choice, text });
const thought = (text: string): ChatEvent => ({ type: "reasoning-delta", choice, text });
const call = { type: "tool-call", kind: "function", name: "f" } as const;

describe("blocks are in the order of their first events", () => {
  test("a text that a call interrupts begins anew, and calls may grow in turns", () => {
    const start = (index: number): ChatEvent => ({
      ...call,
      type: "tool-call-start",
      choice,
      call: index,
      id: `c${index}`,
    });
    const more = (index: number, text: string): ChatEvent => ({
      type: "tool-call-delta",
      choice,
      call: index,
      arguments: text,
    });
    const blocks = blocksOf(
      said("a"),
      said("b"),
      start(0),
      start(1),
      more(1, "{"),
      more(0, "{}"),
      said("c"),
      more(1, "}"),
      said("d"),
    );
    expect(blocks).toEqual([
      { type: "text", text: "ab" },
      { ...call, id: "c0", arguments: "{}" },
      { ...call, id: "c1", arguments: "{}" },
      { type: "text", text: "cd" },
    ]);
  });

  test("a whole thought takes the place of its deltas, and ends it", () => {
    const signed = { type: "reasoning", text: "Hm.", opaque: "s" } as const;
    const redacted = { type: "reasoning", text: "", opaque: "r", isRedacted: true } as const;
    const blocks = blocksOf(
      thought("H"),
      thought("m."),
      { type: "reasoning-block", choice, content: signed },
      { type: "reasoning-block", choice, content: redacted },
      thought("So."),
      said("a"),
      thought("Then."),
      { type: "reasoning-block", choice, content: redacted },
    );
    expect(blocks).toEqual([
      signed,
      redacted,
      { type: "reasoning", text: "So." },
      { type: "text", text: "a" },
      { type: "reasoning", text: "Then." },
      redacted,
    ]);
  });

  test("a call of the deprecated functions has no id", () => {
    const blocks = blocksOf(
      { type: "function-call-start", choice, name: "f" },
      { type: "function-call-delta", choice, arguments: "{" },
      { type: "function-call-delta", choice, arguments: "}" },
    );
    expect(blocks).toEqual([{ ...call, id: undefined, arguments: "{}" }]);
  });

  test("an empty text is no block, and does not end one", () => {
    expect(blocksOf(said(""), thought("a"), said(""), thought("b"))).toEqual([
      { type: "reasoning", text: "ab" },
    ]);
  });
});

test("the usage at the start counts only where none follows", () => {
  const usage = (inputTokens: number) => ({
    inputTokens,
    outputTokens: 0,
    cachedInputTokens: 0,
    reasoningTokens: 0,
  });
  const start: ChatEvent = { type: "usage-start", usage: usage(1) };
  const end: ChatEvent = { type: "usage-report", usage: usage(2) };
  expect(collectAnswer([start]).usage?.inputTokens).toBe(1);
  expect(collectAnswer([start, end]).usage?.inputTokens).toBe(2);
});

test("an answer tells at which of the caller's sequences it ended", () => {
  const answer = collectAnswer([
    said("a"),
    { type: "choice-finish", choice, finishReason: "stop_sequence", stopSequence: "x" },
  ]);
  expect(answer.choices[0]).toMatchObject({ finishReason: "stop_sequence", stopSequence: "x" });
});
