import { expect, test } from "bun:test";
import { brokenRule } from "./conversation-rules.ts";
import { converseRequest, converseStreamRequest, countTokensRequest } from "./request-shape.ts";

const hi = { role: "user", content: [{ text: "hi" }] };
const call = (toolUseId: string) => ({ toolUse: { toolUseId, name: "f", input: {} } });
const result = (toolUseId: string) => ({ toolResult: { toolUseId, content: [] } });
const document = (name: string) => ({
  document: { name, format: "txt", source: { bytes: "AAAA" } },
});
const point = { cachePoint: { type: "default" } };
const toolConfig = { tools: [{ toolSpec: { name: "f", inputSchema: { json: {} } } }] };

function withContent(...content: readonly unknown[]): object {
  return { messages: [{ role: "user", content }] };
}

const misshapen: readonly (readonly [string, object])[] = [
  ["no messages", { messages: [] }],
  ["an empty turn", withContent()],
  ["an empty text", withContent({ text: "" })],
  ["a blank text", withContent({ text: " \n" })],
  ["a block of two kinds", withContent({ text: "a", ...point })],
  ["an unknown block", withContent({ audio: {} })],
  ["an unknown field", { messages: [hi], seed: 1 }],
  ["a turn of the system", { messages: [{ role: "system", content: [{ text: "a" }] }] }],
  ["an empty system list", { messages: [hi], system: [] }],
  ["an empty list of tools", { messages: [hi], toolConfig: { tools: [] } }],
  [
    "two choices",
    { messages: [hi], toolConfig: { ...toolConfig, toolChoice: { any: {}, auto: {} } } },
  ],
  [
    "no choice of none",
    { messages: [hi], toolConfig: { ...toolConfig, toolChoice: { none: {} } } },
  ],
  ["an id with a dot", { messages: [hi, { role: "assistant", content: [call("a.b")] }] }],
  [
    "an empty text in a result",
    withContent({ toolResult: { toolUseId: "a", content: [{ text: "" }] } }),
  ],
  [
    "an image of the assistant",
    { messages: [hi, { role: "assistant", content: [document("a")] }] },
  ],
  ["a document's name with a dot", withContent(document("a.txt"))],
  ["a document's name with two spaces", withContent(document("a  b"))],
  ["bytes that are no base64", withContent({ image: { format: "png", source: { bytes: "*" } } })],
  [
    "a format of another name",
    withContent({ image: { format: "jpg", source: { bytes: "AAAA" } } }),
  ],
  ["a temperature above 1", { messages: [hi], inferenceConfig: { temperature: 1.1 } }],
  ["no tokens", { messages: [hi], inferenceConfig: { maxTokens: 0 } }],
  ["an empty list of stops", { messages: [hi], inferenceConfig: { stopSequences: [] } }],
  ["a blank stop", { messages: [hi], inferenceConfig: { stopSequences: ["\n"] } }],
  ["an unknown tier", { messages: [hi], serviceTier: { type: "auto" } }],
  [
    "a schema that is no text",
    {
      messages: [hi],
      outputConfig: {
        textFormat: { type: "json_schema", structure: { jsonSchema: { schema: {} } } },
      },
    },
  ],
  [
    "a guardrail's stream mode outside a stream",
    {
      messages: [hi],
      guardrailConfig: {
        guardrailIdentifier: "g",
        guardrailVersion: "1",
        streamProcessingMode: "sync",
      },
    },
  ],
];

for (const [what, body] of misshapen) {
  test(`the shape refuses ${what}`, () => {
    expect(converseRequest.safeParse(body).success).toBe(false);
  });
}

const assistant = (...content: readonly unknown[]) => ({ role: "assistant", content });
const user = (...content: readonly unknown[]) => ({ role: "user", content });

const unruly: readonly (readonly [string, object])[] = [
  ["a first turn of the assistant", { messages: [assistant({ text: "a" }), hi] }],
  ["two turns of the user in a row", { messages: [hi, hi] }],
  ["calls without tools", { messages: [hi, assistant(call("a")), user(result("a"))] }],
  ["a call without a result", { messages: [hi, assistant(call("a")), hi], toolConfig }],
  ["a last call without a result", { messages: [hi, assistant(call("a"))], toolConfig }],
  ["a result without a call", { messages: [user(result("a"))], toolConfig }],
  [
    "an id used twice",
    {
      messages: [
        hi,
        assistant(call("a")),
        user(result("a")),
        assistant(call("a")),
        user(result("a")),
      ],
      toolConfig,
    },
  ],
  [
    "words before results",
    { messages: [hi, assistant(call("a")), user({ text: "b" }, result("a"))], toolConfig },
  ],
  [
    "two tools of one name",
    { messages: [hi], toolConfig: { tools: [...toolConfig.tools, ...toolConfig.tools] } },
  ],
  [
    "the choice of a tool that is not offered",
    { messages: [hi], toolConfig: { ...toolConfig, toolChoice: { tool: { name: "g" } } } },
  ],
  ["a cache point that comes first", withContent(point, { text: "a" })],
  ["five cache points", withContent({ text: "a" }, point, point, point, point, point)],
  ["six documents", withContent({ text: "a" }, ...["b", "c", "d", "e", "f", "g"].map(document))],
  ["documents without a text", withContent(document("a"))],
  ["two documents of one name", withContent({ text: "x" }, document("a"), document("a"))],
  ["a prefill that ends in white space", { messages: [hi, assistant({ text: "a " })] }],
  [
    "two choices of tools",
    {
      messages: [hi],
      toolConfig: { ...toolConfig, toolChoice: { any: {} } },
      additionalModelRequestFields: { tool_choice: { type: "any" } },
    },
  ],
  [
    "thinking with a temperature",
    {
      messages: [hi],
      inferenceConfig: { maxTokens: 2000, temperature: 1 },
      additionalModelRequestFields: { thinking: { type: "adaptive" } },
    },
  ],
  [
    "thinking that takes the whole answer",
    {
      messages: [hi],
      inferenceConfig: { maxTokens: 1024 },
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1024 } },
    },
  ],
  [
    "thinking with a forced tool",
    {
      messages: [hi],
      inferenceConfig: { maxTokens: 2000 },
      toolConfig: { ...toolConfig, toolChoice: { any: {} } },
      additionalModelRequestFields: { thinking: { type: "adaptive" } },
    },
  ],
];

for (const [what, body] of unruly) {
  test(`the rules refuse ${what}`, () => {
    expect(brokenRule(converseRequest.parse(body))).toBeString();
  });
}

test("a whole exchange with tools, documents and cache points is taken", () => {
  const messages = [
    user({ text: "a" }, point, document("b")),
    assistant({ text: "c" }, call("d"), call("e")),
    user(result("e"), point, result("d"), { text: "f" }),
    assistant({ text: "g" }),
  ];
  const guardrailConfig = { guardrailIdentifier: "g", guardrailVersion: "DRAFT" };
  const body = { messages, toolConfig, guardrailConfig };
  expect(brokenRule(converseRequest.parse(body))).toBeUndefined();
  const streamed = { ...guardrailConfig, streamProcessingMode: "async" };
  converseStreamRequest.parse({ ...body, guardrailConfig: streamed });
  countTokensRequest.parse({ input: { converse: { messages, toolConfig } } });
});
