import { expect, test } from "bun:test";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import type { JsonObject } from "../../src/domain/json-fields.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import { readMessagesRequest } from "../../src/wires/messages/read-request.ts";
import { readResponsesRequest } from "../../src/wires/responses/read-request.ts";
import {
  assistant,
  callItem,
  chat,
  type Dialect,
  flatTool,
  hi,
  items,
  png,
  pngBlock,
  text,
  toolResult,
  toolUse,
  turns,
  user,
} from "./cell-parts.ts";
import { sentToResponses } from "./sent-to.ts";

function read(dialect: Dialect, sent: JsonObject): Conversation {
  switch (dialect) {
    case "chat":
      return readChatRequest({ model: "m", messages: [hi], ...sent });
    case "responses":
      return readResponsesRequest({ model: "m", input: [hi], ...sent });
    case "messages":
      return readMessagesRequest({ model: "m", max_tokens: 99, messages: [hi], ...sent });
  }
}

const sound = { type: "input_audio", input_audio: { data: "YQ==", format: "wav" } };
const program = { type: "program", code: "x" };
const image = { type: "input_image", image_url: png };
const group = { type: "namespace", name: "ns", tools: [flatTool] };
const call = { ...callItem, type: "function_call" };
const item = (role: string, content: unknown) => ({ type: "message", role, content });
const first = item("user", "hi");

/** By the rows of the page, for a target that speaks Responses. */
const cells: Readonly<Record<string, readonly [Dialect, JsonObject, JsonObject][]>> = {
  "order of blocks in a turn": [
    [
      "messages",
      turns(assistant(text("so"), toolUse, text("then"))),
      {
        input: [
          first,
          item("assistant", [{ type: "output_text", text: "so" }]),
          call,
          item("assistant", [{ type: "output_text", text: "then" }]),
        ],
      },
    ],
  ],
  audio: [["chat", { messages: [user(sound)] }, { refused: "messages[0].content[0]" }]],
  "group of tools": [
    [
      "responses",
      {
        tools: [group],
        tool_choice: { type: "function", name: "f", namespace: "ns" },
        ...items({ ...callItem, namespace: "ns" }),
      },
      {
        tools: [group],
        tool_choice: { type: "function", name: "f", namespace: "ns" },
        input: [first, { ...call, namespace: "ns" }],
      },
    ],
  ],
  "image in a result": [
    [
      "responses",
      items(callItem, { type: "function_call_output", call_id: "c", output: [image] }),
      { input: [first, call, { type: "function_call_output", call_id: "c", output: [image] }] },
    ],
    [
      "messages",
      turns(assistant(toolUse), user({ ...toolResult, content: [pngBlock], is_error: true })),
      {
        input: [
          first,
          call,
          {
            type: "function_call_output",
            call_id: "c",
            output: [{ type: "input_text", text: "Error" }, image],
          },
        ],
      },
    ],
  ],
  "text of a thought": [
    [
      "chat",
      chat({ role: "assistant", content: "a", reasoning_content: "hm" }),
      { input: [first, item("assistant", "a")] },
    ],
  ],
  "block of one wire": [
    ["responses", items(program), { input: [first, program] }],
    [
      "messages",
      turns(assistant({ type: "server_tool_use", id: "s", name: "web_search", input: {} }), hi),
      { input: [first, first], notices: { messages: "server-blocks-dropped" } },
    ],
  ],
  "stop sequences": [["chat", { stop: ["a"] }, { stop: undefined }]],
  "several choices": [["chat", { n: 2 }, { refused: "n" }]],
  "penalties, logit_bias": [["chat", { logit_bias: { 1: 1 } }, { refused: "logit_bias" }]],
  seed: [["chat", { seed: 1 }, { seed: undefined }]],
};

for (const [concept, cases] of Object.entries(cells)) {
  test.each([...cases])(
    `${concept}, to a server of Responses, from %s %j`,
    (dialect, sent, expected) => {
      const { refused, notices = {}, ...body } = expected;
      const conversation = read(dialect, sent);
      if (refused !== undefined) {
        let param: string | undefined;
        try {
          sentToResponses(conversation);
        } catch (error) {
          param = error instanceof UpstreamFailure ? error.details.param : undefined;
        }
        expect(param).toBe(refused as string);
        return;
      }
      const { body: upstream, adjusted } = sentToResponses(conversation);
      for (const [field, value] of Object.entries(body)) {
        expect(upstream[field]).toEqual(value as never);
      }
      expect(Object.fromEntries(adjusted)).toEqual(notices as Record<string, string>);
    },
  );
}

test("the page has these cells and no others", async () => {
  const page = await Bun.file(`${import.meta.dir}/../../docs/conversation.md`).text();
  const [, section = ""] = page.split("\n## Where Responses differs\n");
  const [table = ""] = section.split("\n## ");
  const concepts = [...table.matchAll(/^- (.*): \w+\.$/gm)].map(([, concept]) => concept);
  expect(concepts).toEqual(Object.keys(cells));
});
