import { expect, test } from "bun:test";
import { chatOf, modelWith } from "../../../test/bedrock/checked-encode.ts";
import { encodeConverse } from "./encode/encode-converse.ts";

// Requests of the largest size. They would block the process for minutes if any step were not
// linear in the number of parts.

const claude = modelWith("us.anthropic.claude-sonnet-4-20250514-v1:0");
const mistral = modelWith("mistral.mistral-large-2402-v1:0");
const mixtral = modelWith("mistral.mixtral-8x7b-instruct-v0:1", { dropUnsupported: true });

const part = {
  type: "text" as const,
  text: "a",
  prompt_cache_breakpoint: { mode: "explicit" as const },
};
const parts = Array.from({ length: 150_000 }, () => part);
const tools = Array.from({ length: 128 }, (_, index) => ({
  type: "function" as const,
  function: { name: `tool.${index}` },
}));

function lengthOf(messages: readonly object[], model = claude): number {
  return encodeConverse(chatOf({ messages, tools }), model, { isStreamed: false }).body.length;
}

test.each([
  ["a model with instructions of their own", claude],
  ["a model without", mixtral],
])("150,000 parts in one message of each role are encoded for %s", (_what, model) => {
  const messages: readonly object[] = [
    { role: "system", content: parts },
    { role: "user", content: parts },
    { role: "assistant", content: parts },
    { role: "user", content: "Go on" },
  ];
  expect(lengthOf(messages, model)).toBeGreaterThan(3 * parts.length * '{"text":"a"}'.length);
});

test("a million instructions precede the first message of a model without a system field", () => {
  const instructions = Array.from({ length: 1_000_000 }, () => part);
  const messages: readonly object[] = [
    { role: "system", content: instructions },
    { role: "user", content: "hi" },
  ];
  expect(lengthOf(messages, mixtral)).toBeGreaterThan(instructions.length * 10);
});

test.each([
  ["claude", claude],
  ["mistral", mistral],
  ["mixtral", mixtral],
])("15,000 calls with one id, each with its result, are encoded for %s", (_what, model) => {
  const call = { type: "function" as const, function: { name: "a tool", arguments: "{}" } };
  const exchange: readonly object[] = [
    { role: "assistant", content: null, tool_calls: [{ id: "call_0", ...call }] },
    { role: "tool", tool_call_id: "call_0", content: "x" },
  ];
  const first = { role: "user", content: "hi" };
  const messages = [first, ...Array.from({ length: 15_000 }, () => exchange).flat()];
  expect(lengthOf(messages, model)).toBeGreaterThan(messages.length * 40);
});

test("100,000 calls in one message and their results in reverse order are encoded", () => {
  const ids = Array.from({ length: 100_000 }, (_, index) => `call:${index}`);
  const messages: readonly object[] = [
    { role: "user", content: "hi" },
    {
      role: "assistant",
      content: null,
      tool_calls: ids.map((id, index) => ({
        id,
        type: "function" as const,
        function: { name: `made up ${index}`, arguments: "{}" },
      })),
    },
    ...ids.toReversed().map((id) => ({
      role: "tool" as const,
      tool_call_id: id,
      content: "x",
    })),
  ];
  expect(lengthOf(messages)).toBeGreaterThan(ids.length * 100);
});
