import { responseWorld } from "../../../test/support/response-world.ts";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { JsonObject } from "../../domain/json-object.ts";
import { checkCountRequest } from "./check-request.ts";
import { messages } from "./messages-dialect.ts";
import { writeMessagesError } from "./write-error.ts";

const user = { role: "user", content: "hi" };
const valid = { model: "claude", max_tokens: 100, messages: [user] };
const own = { name: "f", input_schema: { type: "object" } };
const search = { type: "web_search_20250305", name: "web_search" };

/** Undefined if the body is taken. */
function refusalOf(
  more: JsonObject,
  without?: string,
): { type: string; message: string } | undefined {
  const body: Record<string, unknown> = { ...valid, ...more };
  if (without !== undefined) Reflect.deleteProperty(body, without);
  try {
    void messages.read({ value: structuredClone(body), text: "" }, responseWorld().callOf());
    return undefined;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { status, body: text } = writeMessagesError(error, "req_1");
    expect(status).toBe(400);
    return (JSON.parse(text) as { error: { type: string; message: string } }).error;
  }
}

function messageOf(more: JsonObject, without?: string): string | undefined {
  return refusalOf(more, without)?.message;
}

function blockMessage(block: object): string | undefined {
  return messageOf({
    messages: [user, { role: "user", content: [{ type: "text", text: "a" }, block] }],
  });
}

test("a required field that is absent is named", () => {
  for (const field of ["model", "max_tokens", "messages"]) {
    expect(refusalOf({}, field)).toEqual({
      type: "invalid_request_error",
      message: `${field}: Field required`,
    });
  }
  expect(messageOf({ tools: [{ name: "f" }] })).toBe("tools.0.input_schema: Field required");
  expect(() => checkCountRequest({ model: "claude", messages: [user] })).not.toThrow();
});

test.each([
  [{ max_tokens: "5" }, "max_tokens: Expected an integer, but got a string instead."],
  [{ max_tokens: 0 }, /^max_tokens: 0 would only warm the provider's prompt cache/],
  [{ max_tokens: -1 }, /^max_tokens: Integer below minimum value/],
  [{ messages: [] }, /^messages: Empty array/],
  [{ messages: [{ role: "user", content: "" }] }, /^messages: At least one message/],
  [{ messages: [{ role: "system", content: "x" }] }, /^messages: At least one message/],
  [{ messages: [{ role: "tool", content: "x" }] }, /^messages\.0\.role: .*'user', 'assistant'/],
  [{ messages: [{ role: "user" }] }, "messages.0.content: Field required"],
  [{ temperature: 1.5 }, /^temperature: Decimal above maximum value/],
  [{ tools: [{ ...own, input_schema: { type: "string" } }] }, /^tools\.0\.input_schema: .*'f'/],
  [{ tools: [own], tool_choice: { type: "tool", name: "g" } }, /^tool_choice\.name: Tool 'g' not/],
  [{ safeguards: {} }, /^safeguards: /],
] as const)("%p is refused", (more, message) => {
  const told = messageOf(more);
  if (typeof message === "string") expect(told).toBe(message);
  else expect(told).toMatch(message);
});

describe("a block", () => {
  test.each([
    [{ type: "text" }, "messages.1.content.1.text: Field required"],
    [{ text: "a" }, "messages.1.content.1.type: Field required"],
    [
      { type: "image", source: { type: "file", file_id: "f" } },
      /\.1\.content\.1\.source: .*base64/,
    ],
    [{ type: "document", source: { type: "url", url: "https://a.example" } }, /\.source: .*base64/],
    [{ type: "tool_use", id: "t", name: "f", input: "x" }, /^messages\.1\.content\.1\.input: /],
    [
      { type: "tool_result", tool_use_id: "t", content: [{ type: "text" }] },
      "messages.1.content.1.content.0.text: Field required",
    ],
  ] as const)("%p is refused by its path", (block, message) => {
    if (typeof message === "string") expect(blockMessage(block)).toBe(message);
    else expect(blockMessage(block)).toMatch(message);
  });

  test("of a new type passes, and so do unknown and null fields", () => {
    expect(blockMessage({ type: "of_tomorrow", any: { thing: null } })).toBeUndefined();
    expect(blockMessage({ type: "text", text: "a", citations: null, more: 1 })).toBeUndefined();
    const more = {
      context_management: { edits: [{}] },
      speed: "fast",
      container: null,
      top_k: null,
    };
    expect(messageOf({ ...more, thinking: { type: "enabled" } })).toBeUndefined();
    const marked = { cache_control: { type: "ephemeral", ttl: "2h" } };
    expect(messageOf({ ...marked, output_config: { effort: "ultra" } })).toBeUndefined();
  });
});

test("a thread is refused with the code after which clients send the whole conversation", () => {
  for (const thread of [{ type: "create" }, { type: "continue", previous_message_id: "msg_1" }]) {
    expect(refusalOf({ thread })).toMatchObject({
      type: "invalid_request_error",
      details: { error_code: "thread_unsupported_request" },
    });
  }
  expect(refusalOf({ thread: null })).toBeUndefined();
});

test("tools of the provider are refused only if the answer depends on one", () => {
  expect(messageOf({ tools: [search, own] })).toBeUndefined();
  expect(messageOf({ tools: [] })).toBeUndefined();
  expect(messageOf({ tools: [search] })).toMatch(/^tools: .*'web_search_20250305'/);
  const forced = { tools: [search, own], tool_choice: { type: "tool", name: "web_search" } };
  expect(messageOf(forced)).toMatch(/^tool_choice\.name: .*'web_search_20250305'/);
});

const word = fc.constantFrom(
  "user",
  "assistant",
  "system",
  "text",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "tool_result",
  "image",
  "document",
  "search_result",
  "base64",
  "url",
  "content",
  "ephemeral",
  "enabled",
  "json_schema",
  "tool",
  "custom",
);
const names =
  "type role content text source data media_type url id name input tool_use_id thinking signature cache_control ttl title input_schema schema format __proto__".split(
    " ",
  );
const { node } = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(word, fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null)),
    fc.array(tie("node"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...names), tie("node")),
  ),
}));

test("any body is read or refused with a 400", () => {
  const fields = ["messages", "system", "tools", "tool_choice", "thinking", "output_config"];
  const more = [...fields, "metadata", "stop_sequences", "cache_control", "temperature", "thread"];
  const body = fc.dictionary(fc.constantFrom(...more), node, { maxKeys: 5 });
  fc.assert(
    fc.property(body, node, (fuzzed, content) => {
      refusalOf(fuzzed);
      refusalOf({ messages: [{ role: "user", content }] });
    }),
    { numRuns: 3_000 },
  );
});
