import { describe, expect, test } from "bun:test";
import { parseChatRequest } from "./chat-request.ts";

const user = { role: "user", content: "hi" };
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const tool = { type: "function", function: { name: "f" } };

function parse(fields: Record<string, unknown>): unknown {
  return parseChatRequest({ model: "m", messages: [user], ...fields });
}

describe("fields without effect", () => {
  const plain = { model: "m", messages: [user] };

  test("an empty list of tools is dropped with every choice among them", () => {
    expect(parse({ tools: [] })).toStrictEqual(plain);
    expect(parse({ tools: [], tool_choice: "required", parallel_tool_calls: true })).toStrictEqual(
      plain,
    );
    expect(
      parse({ tools: [], tool_choice: { type: "function", function: { name: "f" } } }),
    ).toStrictEqual(plain);
  });

  test("a choice among tools is dropped where no tools are offered", () => {
    expect(parse({ tool_choice: "auto", parallel_tool_calls: false })).toStrictEqual(plain);
    expect(parse({ tools: null, tool_choice: "none" })).toStrictEqual(plain);
  });

  test("an empty list of functions is dropped with the choice among them", () => {
    expect(parse({ functions: [], function_call: { name: "f" } })).toStrictEqual(plain);
    expect(parse({ function_call: "auto" })).toStrictEqual(plain);
  });

  test("tools and functions are told apart", () => {
    const tools = { tools: [tool], tool_choice: "auto" };
    expect(parse({ ...tools, function_call: "auto" })).toStrictEqual({ ...plain, ...tools });
  });

  test("empty lists of stop texts and modalities are dropped", () => {
    expect(parse({ stop: [], modalities: [] })).toStrictEqual(plain);
  });
});

describe("messages with empty lists", () => {
  test("an empty list of tool calls is dropped from a message that has content", () => {
    const request = parse({ messages: [{ role: "assistant", content: "a", tool_calls: [] }] });
    expect(request).toStrictEqual({ model: "m", messages: [{ role: "assistant", content: "a" }] });
  });

  test("empty content beside a tool call is dropped, and so is null", () => {
    for (const content of [[], null]) {
      const message = { role: "assistant", content, tool_calls: [call] };
      expect(parse({ messages: [message] })).toStrictEqual({
        model: "m",
        messages: [{ role: "assistant", tool_calls: [call] }],
      });
    }
  });
});

test("null content of a function's message stays, since the field is required", () => {
  const messages = [{ role: "function", name: "f", content: null }];
  expect(parse({ messages })).toStrictEqual({ model: "m", messages });
});

test("the body itself becomes the request, with the fields that the schema does not know", () => {
  const body = { model: "m", messages: [user], tools: [], thinking: { type: null } };
  const request = parseChatRequest(body);
  expect(request as unknown).toBe(body);
  expect(request).toStrictEqual({
    model: "m",
    messages: [user],
    thinking: { type: null },
  } as never);
});

test("a body with a key named __proto__ keeps it as a plain key", () => {
  const text = '{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[],';
  const request = parseChatRequest(JSON.parse(`${text}"__proto__":{"stream":true}}`));
  expect(Object.getPrototypeOf(request)).toBe(Object.prototype);
  expect(request.stream).toBeUndefined();
  expect(Object.hasOwn(request, "__proto__")).toBeTrue();
});
