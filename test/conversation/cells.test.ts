import { describe, expect, test } from "bun:test";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import type { JsonObject } from "../../src/domain/json-fields.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import { readMessagesRequest } from "../../src/wires/messages/read-request.ts";
import { readResponsesRequest } from "../../src/wires/responses/read-request.ts";
import { type Dialect, hi } from "./cell-parts.ts";
import { openAiCells } from "./openai-cells.ts";
import { sentToOpenAi } from "./sent-to-openai.ts";

function read(dialect: Dialect, sent: JsonObject): Conversation {
  switch (dialect) {
    case "chat":
      return readChatRequest({ model: "m", messages: [hi], ...sent });
    case "responses":
      return readResponsesRequest({ model: "m", input: [hi], ...sent }).conversation;
    case "messages":
      return readMessagesRequest({ model: "m", max_tokens: 99, messages: [hi], ...sent });
  }
}

for (const [concept, [, ...cases]] of Object.entries(openAiCells)) {
  describe(`${concept}, to an upstream of kind openai`, () => {
    test.each([...cases])("from %s %j", (dialect, sent, expected) => {
      const { notices = {}, refused, forwarded = [], without = [], ...body } = expected;
      const conversation = read(dialect, sent);
      if (refused !== undefined) {
        expect(refusalOf(() => sentToOpenAi(conversation, forwarded))?.param).toBe(refused);
        return;
      }
      const { body: upstream, adjusted } = sentToOpenAi(conversation, forwarded);
      expect(upstream).toMatchObject(body);
      for (const path of without) expect(upstream).not.toHaveProperty(path);
      expect(Object.fromEntries(adjusted)).toEqual({ ...notices });
    });
  });
}

function refusalOf(encoding: () => unknown): { readonly param?: string | undefined } | undefined {
  try {
    encoding();
  } catch (error) {
    if (error instanceof UpstreamFailure) return error.details;
    throw error;
  }
  return undefined;
}

interface Row {
  readonly concept: string;
  /** Of the dialects, and of kind `openai`. */
  readonly read: Readonly<Record<Dialect, string>>;
  readonly openai: string;
}

const page = await Bun.file(`${import.meta.dir}/../../docs/conversation.md`).text();
const [, requests = ""] = page.split("\n## ");
const rows = requests
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .slice(2)
  .map((line): Row => {
    const [, concept = "", ...fates] = line.split("|").map((cell) => cell.trim());
    const [inChat = "", inResponses = "", inMessages = "", openai = ""] = fates;
    return {
      concept,
      read: { chat: inChat, responses: inResponses, messages: inMessages },
      openai,
    };
  });

test("the page has these cells and no others", () => {
  const documented = rows.filter(({ openai }) => openai !== "–");
  expect(documented.map(({ concept, openai }) => [concept, openai])).toEqual(
    Object.entries(openAiCells).map(([concept, [fate]]) => [concept, fate]),
  );
});

test("every dialect that has a concept has a case of it", () => {
  for (const { concept, read: columns, openai } of rows) {
    if (openai === "–") continue;
    const [, ...cases] = openAiCells[concept] ?? [];
    const tested = new Set(cases.map(([dialect]) => dialect));
    const known = dialects.filter((dialect) => !["–", "refused"].includes(columns[dialect]));
    expect([concept, ...dialects.filter((dialect) => tested.has(dialect))]).toEqual([
      concept,
      ...known,
    ]);
  }
});

const dialects = ["chat", "responses", "messages"] as const satisfies readonly Dialect[];
