import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import { ModelRegistry } from "../../simulator/bedrock/models.ts";
import {
  countInputTokens,
  PromptCache,
  readConverseRequest,
} from "../../simulator/bedrock/read-request.ts";
import { parseJson, recordOf } from "../../simulator/json.ts";
import { encodeCountTokens } from "../../src/upstreams/bedrock/count-tokens.ts";
import { answersAsWhole } from "../../src/upstreams/bedrock/encode/encode-converse.ts";
import { knownFamilies } from "../../src/upstreams/bedrock/models/facts.ts";
import { identifiers } from "../support/bedrock-identifiers.ts";
import { startGateway, targetAt, type TestGateway } from "../support/gateway.ts";
import { orderedConversations } from "./conversations.ts";
import { chatOf, encodeChecked, modelWith } from "./checked-encode.ts";
import { runsOf } from "../support/requirement.ts";
import { OpaqueValues } from "../../src/call/opaque/opaque-values.ts";
import { ValueTags } from "../../src/call/opaque/value-tags.ts";
import { testPeppers } from "../support/test-peppers.ts";

const text = fc.constantFrom("", " ", "\n\t", "hi", "Tell me a joke. ");
const content = fc.oneof(
  text,
  fc.array(fc.record({ type: fc.constant("text" as const), text }), {
    minLength: 1,
    maxLength: 3,
  }),
);
const message = (...roles: readonly ("system" | "developer" | "user" | "assistant")[]) =>
  fc.record({ role: fc.constantFrom(...roles), content });

const instruction = fc.record({
  role: fc.constantFrom("system", "developer"),
  content: fc.constant("In French."),
});

/** OpenAI takes all of these; whether the assistant is to go on from its words is another matter. */
const messages: fc.Arbitrary<readonly object[]> = fc
  .oneof(
    fc.array(message("system", "developer"), { minLength: 1, maxLength: 4 }),
    fc.array(message("user"), { minLength: 1, maxLength: 3 }),
    fc.array(message("system", "developer", "user", "assistant"), { minLength: 1, maxLength: 7 }),
    fc
      .tuple(message("assistant"), fc.array(message("user", "assistant"), { maxLength: 5 }))
      .map(([first, rest]) => [first, ...rest]),
  )
  .chain((list) => fc.oneof(message("user"), instruction).map((last) => [...list, last]));

const registry = new ModelRegistry({ models: {}, region: undefined });
const chatRequest: fc.Arbitrary<Conversation> = fc
  .record({
    max_tokens: fc.constant(256),
    messages,
    response_format: fc.constantFrom({ type: "text" } as const, { type: "json_object" } as const),
  })
  .map(chatOf);

/** The thoughts of these conversations are of nobody that this gateway knows. */
const thoughts = new OpaqueValues(
  new ValueTags(testPeppers()).of({
    origin: { wire: "converse", model: "m", account: "a" },
    accountId: "acct_a",
  }),
);

describe.each(Object.entries(identifiers))("a model of the family %s", (family, identifier) => {
  const model = modelWith(identifier);
  const { tools: takesTools } = model.capabilities;
  const takesDocuments =
    model.capabilities.documents && registry.resolve(identifier)?.documents === true;

  test.each([
    ["OpenAI", chatRequest],
    ["Messages or Responses", orderedConversations({ takesDocuments, takesTools })],
  ])("answers every conversation that %s answers, and counts it", (_what, request) => {
    expect<string>(knownFamilies.familyOf(identifier) ?? "other-chat").toBe(family);
    const row = registry.resolve(identifier);
    const property = fc.property(request, fc.boolean(), (sent, wantsStream) => {
      const { request: asked } = thoughts.open(sent);
      const isStreamed = wantsStream && !answersAsWhole(asked, model);
      const body = recordOf(encodeChecked(asked, model, isStreamed).body);
      const call = { body, model: identifier, row, isStreamed, contextWindow: undefined };
      readConverseRequest({ ...call, cache: new PromptCache() });
      const counted = recordOf(parseJson(encodeCountTokens(asked, model)));
      countInputTokens(counted, identifier, row);
    });
    fc.assert(property, { numRuns: runsOf(200) });
  });
});

describe("over HTTP", () => {
  const system = { role: "system", content: "echo: one two" };
  const greeting = { role: "assistant", content: "Hello, how can I help?" };
  const user = { role: "user", content: "echo: three" };
  const silence = { role: "user", content: "" };
  let gateway: TestGateway;

  beforeAll(async () => {
    const target = { model: "anthropic.claude-3-haiku-20240307-v1:0", family: "claude-3" };
    const alias = (name: string, bedrock: string): string => `
  ${name}:
    kind: chat
    context_window: 100000
    targets: [{ model: "${target.model}", upstream: simulator, bedrock: ${bedrock} }]`;
    gateway = await startGateway({
      kind: "bedrock",
      sections: {
        models:
          alias("repairing", "{}") +
          alias("strict", "{ conversation: strict }") +
          `
  usual:
    kind: chat
    context_window: 100000
    targets: [${targetAt("bedrock", target)}]`,
      },
    });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const ask = (model: string, list: readonly object[], stream = false) =>
    gateway.post("/v1/chat/completions", { model, stream, messages: list });

  test.each([
    ["a system message alone", [system]],
    ["a developer message alone", [{ ...system, role: "developer" }]],
    ["an empty user text", [silence]],
    ["an empty user text behind a system message", [system, silence]],
    ["the assistant first", [greeting, user]],
    ["an empty user text at the end", [user, greeting, silence]],
  ])("%s is answered, unless the target is strict", async (_what, list) => {
    for (const stream of [false, true]) {
      for (const model of ["repairing", "usual"]) {
        const response = await ask(model, list, stream);
        await response.text();
        expect(response.status).toBe(200);
      }
    }
  });

  test("a strict target says what to change", async () => {
    for (const [list, words] of [
      [[system], "At least one user message must have content."],
      [[silence], "At least one user message must have content."],
      [[greeting, user], "Put a user message with content first."],
    ] as const) {
      const response = await ask("strict", list);
      expect(response.status).toBe(400);
      expect(await response.text()).toContain(words);
    }
  });

  test("the last instruction is what the model is asked", async () => {
    const response = await ask("repairing", [{ role: "system", content: "Be brief." }, system]);
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: "one two" } }] });
  });
});
