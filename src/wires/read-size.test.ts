import { expect, test } from "bun:test";
import { readChatRequest } from "./chat/read-request.ts";
import { readMessagesRequest } from "./messages/read-request.ts";
import { readResponsesRequest } from "./responses/read-request.ts";

// Lists as long as a body can hold: passed on as arguments of one call, they would overflow the stack.
const count = 300_000;
const many = (type: string) => Array.from({ length: count }, () => ({ type, text: "a" }));
const textsOf = (turns: ReturnType<typeof readChatRequest>["turns"]): number =>
  turns.reduce((sum, { blocks }) => sum + blocks.length, 0);

test("messages of chat", () => {
  const messages = ["user", "assistant"].map((role) => ({ role, content: many("text") }));
  expect(textsOf(readChatRequest({ model: "m", messages }).turns)).toBe(2 * count);
});

test("items of responses, joined to one turn", () => {
  const item = { role: "assistant", content: many("output_text") };
  const tool = { type: "function", name: "f", parameters: {} };
  const tools = [
    { type: "namespace", name: "n", tools: Array.from({ length: count }, () => tool) },
  ];
  const conversation = readResponsesRequest({ model: "m", input: [item, item], tools });
  expect(conversation.turns.length).toBe(1);
  expect(textsOf(conversation.turns)).toBe(2 * count);
  expect(conversation.tools.length).toBe(count);
});

test("turns of messages", () => {
  const message = { role: "assistant", content: many("text") };
  const body = { model: "m", max_tokens: 9, messages: [message, message] };
  const { turns } = readMessagesRequest(body);
  expect(textsOf(turns)).toBe(2 * count);
});
