import { describe, expect, test } from "bun:test";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import type { JsonObject } from "../../src/domain/json-fields.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import { readMessagesRequest } from "../../src/wires/messages/read-request.ts";
import { readResponsesRequest } from "../../src/wires/responses/read-request.ts";
import { type Dialect, hi } from "./cell-parts.ts";
import { claudeCells } from "./claude-cells.ts";
import { openAiCells } from "./openai-cells.ts";
import { sentToAnthropic, sentToBedrock, sentToOpenAi } from "./sent-to.ts";

const claudeKinds = { bedrock: sentToBedrock, anthropic: sentToAnthropic };
type ClaudeKind = keyof typeof claudeKinds;

const dialects = ["chat", "responses", "messages"] as const satisfies readonly Dialect[];
const none = "–";

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

for (const [concept, cell] of Object.entries(claudeCells)) {
  for (const [kind, send] of Object.entries(claudeKinds)) {
    describe(`${concept}, to an upstream of kind ${kind}`, () => {
      test.each(samplesOf(concept))("from %s %j", (dialect, sent) => {
        const { body = {}, bodyFor = {}, without = [], refused, notice } = cell[kind as ClaudeKind];
        const conversation = read(dialect, sent);
        const refusal = refusalOf(() => send(conversation));
        if (refused === undefined) expect(refusal).toBeUndefined();
        else {
          expect(refusal?.param).toMatch(refused);
          return;
        }
        const { body: upstream, adjusted } = send(conversation);
        expect(upstream).toMatchObject(bodyFor[dialect] ?? body);
        for (const path of without) expect(upstream).not.toHaveProperty(path);
        const told = Array.from(adjusted, ([field, value]) => `${field}=${value}`).join(", ");
        if (notice === undefined) expect(told).toBe("");
        else expect(told).toMatch(notice);
      });
    });
  }
}

/** What a caller of each dialect sends: of its own, or of the first case of kind `openai`. */
function samplesOf(concept: string): [Dialect, JsonObject][] {
  const [, ...cases] = openAiCells[concept] ?? [];
  const own = claudeCells[concept]?.sent ?? {};
  return dialects.flatMap((dialect) => {
    const sent = own[dialect] ?? cases.find(([from]) => from === dialect)?.[1];
    return sent === undefined ? [] : [[dialect, sent]];
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
  readonly read: Readonly<Record<Dialect, string>>;
  /** Kinds `openai`, `bedrock`, `anthropic`. */
  readonly fates: readonly string[];
}

const page = await Bun.file(`${import.meta.dir}/../../docs/conversation.md`).text();
const [, requests = ""] = page.split("\n## ");
const [listed = ""] = requests.split("\nMore about");
const kinds = ["openai", "bedrock", "anthropic"];

/** `mapped at openai, bedrock; own at anthropic`: the fate of each of the names. */
function fatesOf(text: string, names: readonly string[], otherwise: string): string[] {
  const parts = [...text.matchAll(/(\w+) (?:at|from) ((?:\w+, )*\w+)/g)];
  const named = new Map(
    parts.flatMap(([, fate = "", list = ""]) => list.split(", ").map((name) => [name, fate])),
  );
  return names.map((name) => (named.get(name) ?? otherwise).replace(/^none$/, none));
}

function rowOf([, concept = "", readers = "", fates = ""]: readonly (string | undefined)[]): Row {
  const [inChat = "", inResponses = "", inMessages = ""] = fatesOf(
    readers.replace(/^((?:\w+, )*\w+)(?=$|;)/, "kept from $1"),
    dialects,
    readers === "" ? "kept" : none,
  );
  return {
    concept,
    read: { chat: inChat, responses: inResponses, messages: inMessages },
    fates: fatesOf(fates, kinds, fates === "for no upstream" ? none : "kept"),
  };
}

const [, keptByAll = ""] = /: (.*?)\. Of the/.exec(listed.replaceAll(/\s+/g, " ")) ?? [];
const rows = [
  ...keptByAll.split(/; |\. So are: /).map((concept) => rowOf([undefined, concept])),
  ...[...listed.matchAll(/^- ([^(:]+?)(?: \(([^)]*)\))?: (.*)\.$/gm)].map(rowOf),
];

test("the page has these cells and no others", () => {
  const tested = (concept: string): readonly string[] => {
    const [openai = none] = openAiCells[concept] ?? [];
    const { bedrock, anthropic } = claudeCells[concept] ?? {};
    return [openai, bedrock?.fate ?? none, anthropic?.fate ?? none];
  };
  expect(rows.map(({ concept, fates }) => [concept, ...fates])).toEqual(
    rows.map(({ concept }) => [concept, ...tested(concept)]),
  );
  const concepts = rows.map(({ concept }) => concept);
  expect(concepts).toContainAllValues([...Object.keys(openAiCells), "tool of the provider"]);
});

test("every dialect that has a concept has a case of it", () => {
  for (const { concept, read: columns } of rows) {
    if (openAiCells[concept] === undefined) continue;
    const known = dialects.filter((dialect) => ![none, "refused"].includes(columns[dialect]));
    expect([concept, ...samplesOf(concept).map(([dialect]) => dialect)]).toEqual([
      concept,
      ...known,
    ]);
  }
});
