import { describe, expect, test } from "bun:test";
import type { Conversation } from "../../domain/chat/conversation.ts";
import type { JsonObject } from "../../domain/json-fields.ts";
import { readMessagesRequest } from "../messages/read-request.ts";
import { readChatRequest } from "./read-request.ts";
import { type RequestRules, writeChatRequest } from "./write-request.ts";

const none: ReadonlySet<string> = new Set();
const rules: RequestRules = {
  fields: {
    root: none,
    message: none,
    part: none,
    spoken: none,
    call: none,
    callBody: none,
    media: none,
  },
  instructionRole: "as_sent",
  flattenTextParts: false,
  dropFields: [],
  maxTokensField: "as_sent",
  streamUsage: true,
};
const user = { role: "user", content: "hi" };

function written(conversation: Conversation, own: Partial<RequestRules> = {}): JsonObject {
  const { body } = writeChatRequest(conversation, "m", { ...rules, ...own });
  return JSON.parse(JSON.stringify(body)) as JsonObject;
}

function chat(fields: JsonObject): Conversation {
  return readChatRequest({ model: "alias", messages: [user], ...fields });
}

function messages(fields: JsonObject): Conversation {
  return readMessagesRequest({ model: "alias", max_tokens: 9, messages: [user], ...fields });
}

test("a body has what was asked for and nothing else", () => {
  expect(written(chat({}))).toEqual({ model: "m", messages: [user] });
  expect(written(chat({ stream: false, temperature: 0, n: 1 }))).toEqual({
    model: "m",
    messages: [user],
    temperature: 0,
    n: 1,
  });
});

describe("the cap", () => {
  const both = chat({ max_tokens: 1, max_completion_tokens: 2 });

  test("keeps the caller's fields, or has the server's, where the newer one counts", () => {
    expect(written(both)).toMatchObject({ max_tokens: 1, max_completion_tokens: 2 });
    for (const maxTokensField of ["max_tokens", "max_completion_tokens"] as const) {
      const sent = written(both, { maxTokensField });
      expect(sent).toEqual({ model: "m", messages: [user], [maxTokensField]: 2 });
      expect(written(messages({}), { maxTokensField })).toMatchObject({ [maxTokensField]: 9 });
    }
  });

  test("of the plan is in the newer field, unless the server has another", () => {
    const capped = { ...chat({}), ownCap: 5 };
    expect(written(capped)).toEqual({ model: "m", messages: [user], max_completion_tokens: 5 });
    expect(written(capped, { maxTokensField: "max_tokens" })).toMatchObject({ max_tokens: 5 });
    expect(written({ ...both, ownCap: 5 })["max_completion_tokens"]).toBe(2);
  });
});

describe("instructions", () => {
  const told = chat({
    messages: [{ role: "system", content: "a" }, { role: "developer", content: "b" }, user],
  });
  const rolesOf = ({ messages: sent }: JsonObject) =>
    (sent as { readonly role: string }[]).map(({ role }) => role);

  test("have the caller's roles or the server's", () => {
    expect(rolesOf(written(told))).toEqual(["system", "developer", "user"]);
    for (const instructionRole of ["system", "developer"] as const) {
      const sent = written(told, { instructionRole });
      expect(rolesOf(sent)).toEqual([instructionRole, instructionRole, "user"]);
    }
  });
});

describe("texts in parts", () => {
  const text = (said: string) => ({ type: "text", text: said });
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const flat = { flattenTextParts: true };

  test("are joined for servers that take no parts, unless there are others among them", () => {
    const texts = { role: "user", content: [text("a"), text("b")] };
    const mixed = { role: "user", content: [text("a"), image] };
    const said = { role: "assistant", content: [text("a"), text("")] };
    expect(written(chat({ messages: [texts, mixed, said] }), flat)["messages"]).toEqual([
      { role: "user", content: "a\nb" },
      mixed,
      { role: "assistant", content: "a\n" },
    ]);
    const result = { role: "tool", tool_call_id: "c", content: [text("a"), text("b")] };
    expect(written(chat({ messages: [result] }), flat)["messages"]).toEqual([
      { ...result, content: "a\nb" },
    ]);
  });

  test("of other callers are joined, too; one alone is no part for anybody", () => {
    const blocks = messages({ messages: [{ role: "user", content: [text("a"), text("b")] }] });
    expect(written(blocks, flat)["messages"]).toEqual([{ role: "user", content: "a\nb" }]);
    const one = messages({ messages: [{ role: "user", content: [text("a")] }] });
    expect(written(one)["messages"]).toEqual([{ role: "user", content: "a" }]);
    const own = chat({ messages: [{ role: "user", content: [text("a")] }] });
    expect(written(own)["messages"]).toEqual([{ role: "user", content: [text("a")] }]);
  });
});

describe("a stream", () => {
  const asked = chat({ stream: true, stream_options: { include_usage: false, other: 1 } });

  test("always asks for usage, as only the gateway wants it", () => {
    const root = new Set(["stream_options"]);
    const fields = { ...rules.fields, root };
    expect(written(asked, { fields })).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(written(asked, { fields })["stream_options"]).toEqual({ include_usage: true });
    expect(written(messages({ stream: true }))["stream_options"]).toEqual({ include_usage: true });
  });

  test("does not where the server refuses that", () => {
    const root = new Set(["stream_options"]);
    const quiet = { streamUsage: false, fields: { ...rules.fields, root } };
    expect(written(asked, quiet)).toEqual({ model: "m", messages: [user], stream: true });
  });
});

test("fields that the server refuses are dropped, whoever asked for them", () => {
  const dropFields = ["temperature", "reasoning_effort", "stream_options", "tools"];
  const tools = [{ type: "function", function: { name: "f" } }];
  const asked = chat({ temperature: 1, reasoning_effort: "low", stream: true, tools });
  expect(written(asked, { dropFields })).toEqual({ model: "m", messages: [user], stream: true });
  const other = messages({ temperature: 1, output_config: { effort: "low" } });
  const plain = { model: "m", messages: [user] };
  expect(written(other, { dropFields })).toEqual({ ...plain, max_completion_tokens: 9 });
});

test("a hook's blocks are sent in place of the caller's", () => {
  const conversation = chat({ messages: [user, { role: "assistant", content: "a" }] });
  const [first, second] = conversation.turns;
  const at = "hook";
  const turns = [
    { ...first, blocks: [{ type: "text", text: "b", at } as const, ...(first?.blocks ?? [])] },
    { ...second, blocks: [] },
  ] as Conversation["turns"];
  expect(written({ ...conversation, turns })["messages"]).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "b" },
        { type: "text", text: "hi" },
      ],
    },
    { role: "assistant", content: null },
  ]);
});
