import { expect, test } from "bun:test";
import type { Conversation } from "../../../domain/chat/conversation.ts";
import { answersAsWhole, encodeConverse } from "./encode-converse.ts";
import { chatOf, modelWith } from "../../../../test/bedrock/checked-encode.ts";

const claude = modelWith("us.anthropic.claude-sonnet-4-20250514-v1:0");
const llama = modelWith("us.meta.llama3-3-70b-instruct-v1:0");
const mistral = modelWith("mistral.mistral-large-2402-v1:0");
const mixtral = modelWith("mistral.mixtral-8x7b-instruct-v0:1", { dropUnsupported: true });

const tools = [{ type: "function", function: { name: "weather" } }] as const;
const request = chatOf({});

function withFile(byteLength: number): Conversation {
  const data = Buffer.alloc(byteLength).toString("base64");
  const file = { filename: "a.pdf", file_data: `data:application/pdf;base64,${data}` };
  return chatOf({ messages: [{ role: "user", content: [{ type: "file", file }] }] });
}

test("a stream with tools is requested whole if the model streams no tool calls", () => {
  expect(answersAsWhole(chatOf({ tools }), llama)).toBe(true);
  expect(answersAsWhole(chatOf({ functions: [{ name: "f" }] }), llama)).toBe(true);
  expect(answersAsWhole(chatOf({ tools }), claude)).toBe(false);
});

test("a stream whose answer is a tool's input is requested whole from such a model", () => {
  const format = { type: "json_schema", json_schema: { name: "answer" } } as const;
  expect(answersAsWhole(chatOf({ response_format: format }), mistral)).toBe(true);
});

test("a schema beside forbidden tools becomes a tool that takes the answer", () => {
  const format = { type: "json_schema", json_schema: { name: "answer" } } as const;
  const wanted = chatOf({ tools, tool_choice: "none", response_format: format });
  const answerTool = {
    toolSpec: {
      name: "answer",
      description: "Takes the answer. Call it once, with the whole answer.",
      inputSchema: { json: { type: "object" } },
    },
  };
  const encoded = encodeConverse(wanted, claude, { isStreamed: false });
  expect(JSON.parse(encoded.body)).toMatchObject({
    toolConfig: { tools: [answerTool], toolChoice: { tool: { name: "answer" } } },
  });
  expect(encoded.context.answerTool).toBe("answer");
  expect(answersAsWhole(wanted, mistral)).toBe(true);
  const functions = chatOf({
    functions: [{ name: "f" }],
    function_call: "none",
    response_format: format,
  });
  const { body, context } = encodeConverse(functions, claude, { isStreamed: false });
  expect(JSON.parse(body)).toMatchObject({ toolConfig: { tools: [answerTool] } });
  expect(context.answerTool).toBe("answer");
});

test("a stream without callable tools is streamed by every model", () => {
  expect(answersAsWhole(request, llama)).toBe(false);
  expect(answersAsWhole(chatOf({ tools: [] }), llama)).toBe(false);
  expect(answersAsWhole(chatOf({ tools, tool_choice: "none" }), llama)).toBe(false);
  expect(answersAsWhole(chatOf({ tools }), mixtral)).toBe(false);
});

test("files of 4.5 MB are taken and larger ones refused", () => {
  const options = { isStreamed: false };
  expect(encodeConverse(withFile(4_500_000), claude, options).body.length).toBeGreaterThan(6e6);
  expect(() => encodeConverse(withFile(4_500_001), claude, options)).toThrow("4500000 bytes");
});

const pixel = "data:image/png;base64,iVBORw0KGgo=";

function withImages(count: number, url = pixel): Conversation {
  const part = { type: "image_url" as const, image_url: { url } };
  const messages = Array.from({ length: count }, () => ({
    role: "user" as const,
    content: [{ type: "text" as const, text: "Look" }, part],
  }));
  return chatOf({ messages });
}

test("a request may have 100 images, or as many as the operator sets for the model", () => {
  const options = { isStreamed: false };
  expect(encodeConverse(withImages(100), claude, options).body).toContain('"image"');
  expect(() => encodeConverse(withImages(101), claude, options)).toThrow(
    "messages[100].content[1]: a request may hold 100 images.",
  );
  const other = modelWith(claude.identifier, { capabilities: { maxImages: 2 } });
  expect(() => encodeConverse(withImages(3), other, options)).toThrow(
    "messages[2].content[1]: a request may hold 2 images.",
  );
  const wide = modelWith(claude.identifier, { capabilities: { maxImages: 5_000 } });
  expect(encodeConverse(withImages(5_000), wide, options).body).toContain('"image"');
});

test("an image may have 5 MiB, or as many bytes as the operator sets for the model", () => {
  const options = { isStreamed: false };
  const ofBytes = (byteLength: number) =>
    withImages(1, `data:image/png;base64,${Buffer.alloc(byteLength).toString("base64")}`);
  const most = 5 * 1024 * 1024;
  expect(encodeConverse(ofBytes(most), claude, options).body.length).toBeGreaterThan(most);
  expect(() => encodeConverse(ofBytes(most + 1), claude, options)).toThrow(
    "messages[0].content[1]: an image may have 5242880 bytes at most.",
  );
  const other = modelWith(claude.identifier, { capabilities: { maxImageBytes: most + 1 } });
  expect(encodeConverse(ofBytes(most + 1), other, options).body.length).toBeGreaterThan(most);
});

test("too many files in a turn are refused at the first one beyond the limit", () => {
  const part = { type: "file" as const, file: { filename: "a.txt", file_data: "AAAA" } };
  const message = { role: "user" as const, content: Array.from({ length: 20_000 }, () => part) };
  const reply = { role: "assistant" as const, content: "Seen." };
  const few = { role: "user" as const, content: [part, part, part] };
  const encode = (messages: readonly object[]) =>
    encodeConverse(chatOf({ messages }), claude, { isStreamed: false });
  expect(() => encode([message])).toThrow("messages[0].content[5]: a turn of the user");
  expect(() => encode([few, few])).toThrow("messages[1].content[2]: a turn of the user");
  expect(encode([few, reply, few, reply, few]).body).toContain('"a (9)"');
});

test("integers in the history's arguments keep all their digits", () => {
  const call = { name: "weather", arguments: '{"station":12345678901234567891}' };
  const { body } = encodeConverse(
    chatOf({
      messages: [
        { role: "user", content: "hi" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c", type: "function", function: call }],
        },
        { role: "tool", tool_call_id: "c", content: "21" },
      ],
      tools,
    }),
    claude,
    { isStreamed: false },
  );
  expect(body).toContain('"input":{"station":12345678901234567891}');
});
