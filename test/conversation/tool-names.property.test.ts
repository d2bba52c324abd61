import { expect, test } from "bun:test";
import fc from "fast-check";
import { callItem, groupedTools } from "../../src/wires/responses/output-items.ts";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { JsonObject } from "../../src/domain/json-object.ts";
import { readResponsesRequest } from "../../src/wires/responses/read-request.ts";
import { sentToAnthropic, sentToBedrock, sentToOpenAi } from "./sent-to.ts";

/** Names that meet each other easily. */
const name = fc.constantFrom("a", "b", "a__b", "b__a", "a__a", "functions");
const tool = name.map((own) => ({ type: "function", name: own, parameters: { type: "object" } }));
const group = fc.record({
  type: fc.constant("namespace"),
  name,
  tools: fc.uniqueArray(tool, { selector: (one) => one.name, maxLength: 3 }),
});
const offers = fc.uniqueArray(fc.oneof(tool, group), {
  selector: (one) => `${one.type} ${one.name}`,
  minLength: 1,
  maxLength: 4,
});

type Offer = typeof offers extends fc.Arbitrary<readonly (infer Each)[]> ? Each : never;

/** Each tool as a call of it names it. */
function namesIn(list: readonly Offer[]): readonly object[] {
  return list.flatMap((one) =>
    "tools" in one
      ? one.tools.map((own) => ({ name: own.name, namespace: one.name }))
      : [{ name: one.name }],
  );
}

const sentNames = {
  openai: (body: JsonObject) =>
    (body["tools"] as { function: { name: string } }[]).map((each) => each.function.name),
  anthropic: (body: JsonObject) => (body["tools"] as { name: string }[]).map((each) => each.name),
  bedrock: (body: JsonObject) =>
    (body["toolConfig"] as { tools: { toolSpec: { name: string } }[] }).tools.map(
      (each) => each.toolSpec.name,
    ),
};
const kinds = { openai: sentToOpenAi, anthropic: sentToAnthropic, bedrock: sentToBedrock };

test("a call of a tool in a group finds that tool again, or its name is refused", () => {
  let refused = 0;
  fc.assert(
    fc.property(offers, (tools) => {
      const names = namesIn(tools);
      fc.pre(names.length > 0);
      let conversation: Conversation;
      try {
        conversation = readResponsesRequest({
          model: "m",
          input: [{ role: "user", content: "hi" }],
          tools,
        });
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        expect(error.status).toBe(400);
        expect(error.toBody().error.param).toMatch(/^tools\[\d\](?:\.tools\[\d\])?\.name$/);
        refused += 1;
        return;
      }
      const grouped = groupedTools(conversation.tools);
      const options = { id: "", grouped, hasEncryptedReasoning: false, encrypted: new Map() };
      for (const [kind, send] of Object.entries(kinds)) {
        const sent = sentNames[kind as keyof typeof kinds](send(conversation).body);
        const found = sent.map((flat) => {
          const call = { id: "c", kind: "function", name: flat, arguments: "{}" } as const;
          const item = callItem("fc_1", { ...call, status: "completed" }, options) as JsonObject;
          const { name: own, namespace } = item;
          return namespace === undefined ? { name: own } : { name: own, namespace };
        });
        expect<unknown>([kind, ...found]).toEqual([kind, ...names]);
      }
    }),
    { numRuns: 2_000 },
  );
  expect(refused).toBeGreaterThan(0);
});

test("the refusal says what to change", () => {
  const own = { type: "function", name: "b", parameters: { type: "object" } };
  const tools = [
    { ...own, name: "a__b" },
    { type: "namespace", name: "a", tools: [own] },
  ];
  expect(() => readResponsesRequest({ model: "m", input: "hi", tools })).toThrow(
    "two tools would be 'a__b' to them. Rename one of the tools or groups.",
  );
});
