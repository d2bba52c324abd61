import { decodeConverse } from "../../../../test/support/answer-decoding.ts";
import type { ChatEvent } from "../../../domain/chat/answer.ts";
import { expect, test } from "bun:test";
import type { AnswerContext } from "../../shared/answers/answer-context.ts";
import { AnswerEvents } from "../../shared/answers/answer-events.ts";
import { partsOf } from "../../../../test/bedrock/choice-parts.ts";

const context: AnswerContext = {
  toolNames: new Map(),
  textTools: new Set(),
  answerTool: "answer",
  usesFunctions: false,
  check: undefined,
  stopSequences: [],
  sentStop: undefined,
};
const call = (name: string, input: object) => ({
  toolUse: { toolUseId: `id-${name}`, name, input },
});

function decode(...content: object[]) {
  const body = { output: { message: { content } }, stopReason: "tool_use" };
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const [choice] = decodeConverse({ headers: new Headers(), body: bytes }, context).choices;
  return { ...partsOf(choice ?? { blocks: [] }), finishReason: choice?.finishReason };
}

/** The events of successive tool calls. */
function streamed(...names: string[]) {
  return streamedUntil([], ...names);
}

/** The same with stop sequences. */
function streamedUntil(stopSequences: readonly string[], ...names: string[]) {
  const answer = new AnswerEvents({ ...context, stopSequences }, () => undefined);
  const events: ChatEvent[] = [];
  answer.writeTo(events);
  answer.text("Let me see.");
  for (const name of names) {
    const input = answer.toolUse(`id-${name}`, name);
    input.push(`{"from":"${name}"}`);
    input.end();
  }
  answer.finish("tool_use");
  return events.map((event) => {
    switch (event.type) {
      case "text-delta":
        return event.text;
      case "tool-call-start":
        return event.name;
      case "choice-finish":
        return event.finishReason;
      default:
        return undefined;
    }
  });
}

test("the input of the tool that takes the answer is the answer", () => {
  expect(decode({ text: "Sure." }, call("answer", { a: 1 }))).toMatchObject({
    content: '{"a":1}',
    toolCalls: [],
    finishReason: "stop",
  });
});

test("calls of the caller's tools win over an answer before or after them", () => {
  const calls = [
    [call("look", {}), call("answer", { a: 1 })],
    [call("answer", { a: 1 }), call("look", {})],
  ];
  for (const content of calls) {
    expect(decode(...content)).toMatchObject({
      content: undefined,
      toolCalls: [{ name: "look" }],
      finishReason: "tool_calls",
    });
  }
});

test("a stream without an answer has the text", () => {
  expect(streamed("look")).toEqual(["Let me see.", "look", undefined, "tool_calls"]);
  expect(streamed()).toEqual(["Let me see.", "stop"]);
});

test("a stream drops an answer after calls, and keeps one before them", () => {
  expect(streamed("look", "answer")).toEqual(["Let me see.", "look", undefined, "tool_calls"]);
  expect(streamed("answer", "look")).toEqual([
    '{"from":"answer"}',
    "look",
    undefined,
    "tool_calls",
  ]);
});

test("of two answers the first one counts", () => {
  expect(streamed("answer", "answer")).toEqual(['{"from":"answer"}', "stop"]);
});

test("stop sequences end only text, and not text that an answer replaces", () => {
  expect(streamedUntil(["me"], "answer")).toEqual(['{"from":"answer"}', "stop"]);
  expect(streamedUntil(["from"], "answer")).toEqual(['{"from":"answer"}', "stop"]);
  expect(streamedUntil(["me"], "look")).toEqual(["Let ", "stop_sequence"]);
  expect(streamedUntil(["me"])).toEqual(["Let ", "stop_sequence"]);
  expect(streamedUntil(["see.."])).toEqual(["Let me see.", "stop"]);
});
