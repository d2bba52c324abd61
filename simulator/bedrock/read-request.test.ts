import { describe, expect, test } from "bun:test";
import type { JsonRecord } from "../json.ts";
import { BedrockError } from "./errors.ts";
import type { CapabilityRow } from "./capabilities.ts";
import { type ConverseRequest, PromptCache, readConverseRequest } from "./read-request.ts";
import { ModelRegistry } from "./models.ts";
import { markOfThoughts, reasoningSignature } from "./reasoning.ts";

const registry = new ModelRegistry({ models: {}, region: undefined });
const ids = {
  any: "simulated-model",
  claude: "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  claude46: "eu.anthropic.claude-sonnet-4-6",
  claude5: "global.anthropic.claude-opus-5",
  claude55: "global.anthropic.claude-opus-5-5",
  oldClaude: "anthropic.claude-3-haiku-20240307-v1:0",
  newClaude: "global.anthropic.claude-opus-4-7",
  llama: "meta.llama3-1-405b-instruct-v1:0",
  nova: "us.amazon.nova-lite-v1:0",
  mixtral: "mistral.mixtral-8x7b-instruct-v0:1",
  mistral: "mistral.mistral-large-2402-v1:0",
} as const;

interface Asking {
  readonly body: JsonRecord;
  readonly model?: keyof typeof ids;
  readonly isStreamed?: boolean;
  readonly cache?: PromptCache;
  readonly row?: Partial<CapabilityRow>;
}

function read({ body, model = "any", isStreamed = false, ...more }: Asking): ConverseRequest {
  return readConverseRequest({
    body,
    model: ids[model],
    row: { ...registry.resolve(ids[model]), ...more.row },
    isStreamed,
    contextWindow: undefined,
    cache: more.cache ?? new PromptCache(),
  });
}

function messageOf(asking: Asking): string {
  try {
    read(asking);
    return "accepted";
  } catch (error) {
    if (error instanceof BedrockError) return error.message;
    throw error;
  }
}

const text = (words: string) => ({ text: words });
const user = (...content: object[]) => ({ role: "user", content });
const assistant = (...content: object[]) => ({ role: "assistant", content });
const hello = { messages: [user(text("Hello!"))] };
const tool = (name: string, json: object = { type: "object" }) => ({
  toolSpec: { name, inputSchema: { json } },
});
const toolConfig = { tools: [tool("look")] };
const toolUse = (toolUseId: string, input: unknown = {}) => ({
  toolUse: { toolUseId, name: "look", input },
});
const toolResult = (toolUseId: string, ...content: object[]) => ({
  toolResult: { toolUseId, content },
});
const image = { image: { format: "png", source: { bytes: "aGk=" } } };
const pdf = (name: string) => ({
  document: { format: "pdf", name, source: { bytes: "aGk=" } },
});
const fromModel = "The model returned the following errors: ";

describe("the shape of a request", () => {
  test.each<[string, JsonRecord, string]>([
    [
      "a number below its range",
      { ...hello, inferenceConfig: { maxTokens: 0 } },
      "1 validation error detected: Value '0' at 'inferenceConfig.maxTokens' failed to satisfy " +
        "constraint: Member must have value greater than or equal to 1",
    ],
    [
      "a temperature of OpenAI's range",
      { ...hello, inferenceConfig: { temperature: 1.5, topP: -1 } },
      "2 validation errors detected: Value '1.5' at 'inferenceConfig.temperature' failed to " +
        "satisfy constraint: Member must have value less than or equal to 1; Value '-1' at " +
        "'inferenceConfig.topP' failed to satisfy constraint: Member must have value greater " +
        "than or equal to 0",
    ],
    [
      "no tools",
      { ...hello, toolConfig: { tools: [] } },
      "1 validation error detected: Value '[]' at 'toolConfig.tools' failed to satisfy " +
        "constraint: Member must have length greater than or equal to 1",
    ],
    [
      "a tool name with a dot",
      { ...hello, toolConfig: { tools: [tool("a.b")] } },
      "1 validation error detected: Value 'a.b' at 'toolConfig.tools.1.member.toolSpec.name' " +
        "failed to satisfy constraint: Member must satisfy regular expression pattern: " +
        "[a-zA-Z0-9_-]+",
    ],
    [
      "an unknown role",
      { messages: [{ role: "tool", content: [text("x")] }] },
      "1 validation error detected: Value 'tool' at 'messages.1.member.role' failed to satisfy " +
        "constraint: Member must satisfy enum value set: [user, assistant]",
    ],
    [
      "a missing member",
      { messages: [{ role: "user" }] },
      "1 validation error detected: Value null at 'messages.1.member.content' failed to satisfy " +
        "constraint: Member must not be null",
    ],
    [
      "two members of a union",
      { messages: [user({ text: "x", ...image })] },
      "1 validation error detected: Value at 'messages.1.member.content.1.member' failed to " +
        "satisfy constraint: Member must have exactly one of its members set",
    ],
    [
      "a field of OpenAI's wire",
      { ...hello, inferenceConfig: { max_tokens: 5 } },
      "Malformed input request: #/inferenceConfig: extraneous key [max_tokens] is not " +
        "permitted, please reformat your input and try again.",
    ],
    [
      "a field of streams only",
      {
        ...hello,
        guardrailConfig: {
          guardrailIdentifier: "abc",
          guardrailVersion: "1",
          streamProcessingMode: "sync",
        },
      },
      "Malformed input request: #/guardrailConfig: extraneous key [streamProcessingMode] is not " +
        "permitted, please reformat your input and try again.",
    ],
    ["a wrong type", { messages: "hello" }, "STRING_VALUE cannot be converted to a List"],
    ["a fraction", { ...hello, inferenceConfig: { maxTokens: 1.5 } }, "1.5 is not an integer"],
    [
      "bytes that are not base64",
      { messages: [user({ image: { format: "png", source: { bytes: "data:x" } } })] },
      "A Blob must be base64",
    ],
  ])("is refused for %s", (_what, body, message) => {
    expect(messageOf({ body })).toBe(message);
  });
});

describe("a conversation", () => {
  const refused: [string, object[], RegExp][] = [
    ["no message", [], /^A conversation must start with a user message\./],
    ["a first word of the model", [assistant(text("x"))], /^A conversation must start with a user/],
    [
      "two users in a row",
      [user(text("a")), user(text("b"))],
      /^A conversation must alternate between user and assistant roles\./,
    ],
    [
      "an empty message",
      [user(text("a")), assistant(), user(text("b"))],
      /^The content field in the Message object at messages\.1 is empty\./,
    ],
    [
      "a blank text",
      [user(text("a"), text(" \n"))],
      /^The text field in the ContentBlock object at messages\.0\.content\.1 is blank\./,
    ],
    ["an image of the model", [user(text("a")), assistant(image), user(text("b"))], /user role/],
    ["a document alone", [user(pdf("a"))], /text block is required/],
    ["two documents of a name", [user(text("a"), pdf("a"), pdf("a"))], /same name/],
    ["a document with a file name", [user(text("a"), pdf("a_b.pdf"))], /alphanumeric characters/],
    ["two spaces in a name", [user(text("a"), pdf("a  b"))], /more than one consecutive/],
  ];
  test.each(refused)("is refused for %s", (_what, messages, message) => {
    expect(messageOf({ body: { messages } })).toMatch(message);
  });

  const calls = [user(text("a")), assistant(toolUse("one"), toolUse("two"))];
  const refusedTools: [string, object[], RegExp][] = [
    [
      "a missing result",
      [...calls, user(toolResult("one"))],
      /^Expected toolResult blocks at messages\.2\.content for the following Ids: two$/,
    ],
    [
      "results in two turns",
      [...calls, user(toolResult("one")), assistant(text("x")), user(toolResult("two"))],
      /for the following Ids: two$/,
    ],
    [
      "a result of no call",
      [user(text("a")), assistant(text("b")), user(toolResult("one"))],
      /^The number of toolResult blocks at messages\.2\.content exceeds/,
    ],
    [
      "an empty text in a result",
      [...calls, user(toolResult("one", text("")), toolResult("two"))],
      /messages\.2\.content\.0\.toolResult\.content\.0 is blank/,
    ],
    [
      "an input that is no object",
      [user(text("a")), assistant(toolUse("one", "x")), user(toolResult("one"))],
      /toolUse\.input is invalid\. Provide a json object/,
    ],
    ["an end in calls", calls, /must not end with toolUse blocks/],
  ];
  test.each(refusedTools)("with tools is refused for %s", (_what, messages, message) => {
    expect(messageOf({ body: { messages, toolConfig } })).toMatch(message);
  });

  const whole = [...calls, user(toolResult("one"), toolResult("two", { json: { a: 1 } }))];

  test("with tools is refused without toolConfig", () => {
    expect(messageOf({ body: { messages: whole, toolConfig } })).toBe("accepted");
    expect(messageOf({ body: { messages: whole } })).toBe(
      "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    );
  });

  test("becomes turns: system, user, assistant with calls, and one for each result", () => {
    const { prompt } = read({
      body: { system: [text("Be kind.")], messages: whole, toolConfig },
    });
    expect(prompt.turns.map(({ role, text: words, name }) => [role, words, name])).toEqual([
      ["system", "Be kind.", undefined],
      ["user", "a", undefined],
      ["assistant", "", undefined],
      ["tool", "", "look"],
      ["tool", '{"a":1}', "look"],
    ]);
    expect(prompt.turns[2]?.toolCalls).toEqual([
      { name: "look", input: "{}" },
      { name: "look", input: "{}" },
    ]);
  });
});

describe("the capabilities of a model", () => {
  const refused: [keyof typeof ids, JsonRecord, string][] = [
    ["mixtral", { ...hello, system: [text("x")] }, "This model doesn't support system messages."],
    ["mixtral", { ...hello, toolConfig }, "This model doesn't support tool use."],
    [
      "llama",
      { ...hello, toolConfig: { ...toolConfig, toolChoice: { any: {} } } },
      "This model doesn't support the toolConfig.toolChoice.any field. Remove " +
        "toolConfig.toolChoice.any and try again.",
    ],
    [
      "llama",
      { ...hello, inferenceConfig: { stopSequences: ["x"] } },
      "This model doesn't support the stopSequences field. Remove stopSequences and try again.",
    ],
    [
      "llama",
      { ...hello, inferenceConfig: { maxTokens: 4097 } },
      "The maximum tokens you requested exceeds the model limit of 4096.",
    ],
    [
      "claude",
      { ...hello, inferenceConfig: { temperature: 0.5, topP: 0.5 } },
      `${fromModel}\`temperature\` and \`top_p\` cannot both be specified for this model. ` +
        "Please use only one.",
    ],
    [
      "newClaude",
      { ...hello, inferenceConfig: { temperature: 0.5 } },
      `${fromModel}\`temperature\` is deprecated for this model.`,
    ],
    [
      "newClaude",
      { messages: [user(text("a")), assistant(text("b"))] },
      `${fromModel}This model does not support assistant message prefill. The conversation must ` +
        "end with a user message.",
    ],
    [
      "claude",
      { messages: [user(text("a")), assistant(text("b "))] },
      `${fromModel}messages: final assistant content cannot end with trailing whitespace`,
    ],
    [
      "claude",
      { ...hello, inferenceConfig: { stopSequences: ["\n"] } },
      `${fromModel}stop_sequences: each stop sequence must contain non-whitespace`,
    ],
    [
      "claude",
      { ...hello, additionalModelRequestFields: { reasoning_effort: "low" } },
      `${fromModel}reasoning_effort: Extra inputs are not permitted`,
    ],
    [
      "mistral",
      { ...hello, additionalModelRequestFields: { thinking: {} } },
      "Malformed input request: #: extraneous key [thinking] is not permitted, please reformat " +
        "your input and try again.",
    ],
    [
      "mistral",
      {
        messages: [user(text("a")), assistant(toolUse("one")), user(toolResult("one"))],
        toolConfig,
      },
      `${fromModel}Tool call id was one but must be a-z, A-Z, 0-9, with a length of 9.`,
    ],
    [
      "llama",
      {
        messages: [user(text("a")), assistant(toolUse("one")), user(toolResult("one"), text("b"))],
        toolConfig,
      },
      "Conversation blocks and tool result blocks cannot be provided in the same turn.",
    ],
    [
      "oldClaude",
      { ...hello, system: [text("x"), { cachePoint: { type: "default" } }] },
      "You invoked an unsupported model or your request did not allow prompt caching. See the " +
        "documentation for more information.",
    ],
  ];
  test.each(refused)("%s refuses %j", (model, body, message) => {
    expect(messageOf({ body, model })).toBe(message);
    expect(messageOf({ body })).not.toStartWith("This model doesn't support");
  });

  test("some models refuse tools in streams only", () => {
    const body = { ...hello, toolConfig };
    expect(messageOf({ body, model: "mistral" })).toBe("accepted");
    expect(messageOf({ body, model: "mistral", isStreamed: true })).toBe(
      "This model doesn't support tool use in streaming mode.",
    );
  });

  test("a prompt larger than the context window is refused with the family's text", () => {
    const long = (tokens: number) => ({ messages: [user(text("word ".repeat(tokens)))] });
    const claude = { model: "claude", row: { contextTokens: 200 } } as const;
    expect(messageOf({ body: long(300), ...claude })).toMatch(
      /prompt is too long: \d+ tokens > 200 maximum$/,
    );
    const body = { ...long(50), inferenceConfig: { maxTokens: 190 } };
    expect(messageOf({ body, ...claude })).toMatch(
      /input length and `max_tokens` exceed context limit: \d+ \+ 190 > 200, /,
    );
    const llama = { model: "llama", row: { contextTokens: 200 } } as const;
    expect(messageOf({ body: long(300), ...llama })).toMatch(
      /^This model's maximum context length is 200 tokens\./,
    );
    expect(messageOf({ body: long(1000), ...llama })).toBe(
      "Input is too long for requested model.",
    );
    const nova = { model: "nova", row: { contextTokens: 200 } } as const;
    expect(messageOf({ body: long(300), ...nova })).toMatch(
      /Input Tokens Exceeded: Number of input tokens exceeds maximum length\./,
    );
    const mixtral = { model: "mixtral", row: { contextTokens: 200 } } as const;
    expect(messageOf({ body: long(300), ...mixtral })).toMatch(
      /Prompt contains \d+ tokens, too large for model with 200 maximum context length$/,
    );
  });
});

describe("thinking", () => {
  const thinking = { type: "enabled", budget_tokens: 2048 };
  const asking = (
    more: JsonRecord,
    budget: JsonRecord = thinking,
    model: keyof typeof ids = "claude",
  ) =>
    messageOf({
      model,
      body: { ...hello, additionalModelRequestFields: { thinking: budget }, ...more },
    });

  test("needs room in the output, temperature 1 and a free choice of tools", () => {
    expect(asking({ inferenceConfig: { maxTokens: 4096 } })).toBe("accepted");
    expect(asking({ inferenceConfig: { maxTokens: 2048 } })).toContain("must be greater than");
    expect(asking({ inferenceConfig: { temperature: 0.2 } })).toContain("only be set to 1");
    expect(asking({ toolConfig: { ...toolConfig, toolChoice: { any: {} } } })).toContain("forces");
    expect(asking({}, { type: "enabled", budget_tokens: 1000 })).toContain("equal to 1024");
  });

  test("has the types and efforts of each generation", () => {
    expect(asking({}, { type: "adaptive" })).toContain("adaptive thinking is not supported");
    expect(asking({}, thinking, "newClaude")).toContain('"thinking.type.enabled" is not');
    expect(asking({}, { type: "disabled" }, "claude5")).toBe("accepted");
    expect(asking({}, { type: "disabled" }, "claude55")).toContain('"thinking.type.disabled" is');
    const effort = (level: string, type: string, model: keyof typeof ids) => {
      const fields = { thinking: { type }, output_config: { effort: level } };
      return messageOf({ body: { ...hello, additionalModelRequestFields: fields }, model });
    };
    expect(effort("xhigh", "adaptive", "claude46")).toContain("output_config.effort");
    expect(effort("max", "adaptive", "claude46")).toBe("accepted");
    expect(effort("xhigh", "adaptive", "newClaude")).toBe("accepted");
    expect(effort("max", "disabled", "claude5")).toContain("when thinking is disabled");
    expect(effort("high", "disabled", "claude5")).toBe("accepted");
  });

  test("by default, as in some models, forbids a forced tool", () => {
    const forced = { toolConfig: { ...toolConfig, toolChoice: { any: {} } } };
    expect(messageOf({ body: { ...hello, ...forced }, model: "claude5" })).toContain("forces");
    expect(asking(forced, { type: "disabled" }, "claude5")).toBe("accepted");
  });

  test("is refused unless it comes back as it was signed", () => {
    const thoughts = (reasoningText: object) => ({
      messages: [
        user(text("a")),
        assistant({ reasoningContent: { reasoningText } }, toolUse("one")),
        user(toolResult("one")),
      ],
      toolConfig,
    });
    const mark = markOfThoughts("hm");
    const signature = reasoningSignature({ model: ids.claude, text: "hm", mark });
    expect(asking(thoughts({ text: "hm", signature }))).toBe("accepted");
    expect(asking(thoughts({ text: "ah", signature }))).toContain("Invalid `signature`");
    expect(asking(thoughts({ text: "hm" }))).toContain("signature: Field required");
    const without = [user(text("a")), assistant(toolUse("one")), user(toolResult("one"))];
    expect(asking({ messages: without, toolConfig })).toContain("found `tool_use`");
    const again = { messages: without, toolConfig };
    expect(asking(again, { type: "adaptive" }, "claude46")).toBe("accepted");
    expect(asking(thoughts({ text: "hm", signature }), thinking, "claude46")).toContain("Invalid");
  });
});

describe("a request", () => {
  test("without a limit gets the model's own", () => {
    expect(read({ body: hello, model: "mixtral" }).prompt.maxTokens).toBe(512);
    expect(read({ body: hello, model: "mixtral" }).maxOutputTokens).toBe(4096);
    expect(read({ body: hello, model: "llama" }).prompt.maxTokens).toBe(4096);
    const body = { ...hello, inferenceConfig: { maxTokens: 7 } };
    expect(read({ body, model: "llama" })).toMatchObject({
      maxOutputTokens: 7,
      prompt: { maxTokens: 7 },
    });
  });

  test("asks for a single call in Claude's own field", () => {
    const fields = { tool_choice: { type: "auto", disable_parallel_tool_use: true } };
    const body = { ...hello, toolConfig, additionalModelRequestFields: fields };
    expect(read({ body, model: "claude" }).prompt.toolUse.isParallel).toBe(false);
    expect(read({ body: { ...hello, toolConfig } }).prompt.toolUse.isParallel).toBe(true);
  });

  test("has only cache points that the model supports", () => {
    const point = (ttl?: string) => ({ cachePoint: { type: "default", ...(ttl && { ttl }) } });
    const points = (...ttls: (string | undefined)[]) => ({
      messages: [user(text("a"), ...ttls.map(point))],
    });
    expect(messageOf({ body: points("1h", "5m", undefined), model: "claude" })).toBe("accepted");
    expect(messageOf({ body: points("5m", "1h"), model: "claude" })).toContain("must not come");
    expect(messageOf({ body: points(undefined, "1h"), model: "claude" })).toContain("must not");
    expect(messageOf({ body: points("1h"), model: "claude46" })).toContain("Extra inputs");
    expect(messageOf({ body: points("1h"), model: "nova" })).toContain("Extended TTL");
    expect(messageOf({ body: points("5m"), model: "nova" })).toBe("accepted");
    const body = { ...hello, toolConfig: { tools: [tool("look"), point()] } };
    expect(messageOf({ body, model: "nova" })).toContain("#/toolConfig/tools/1: extraneous key");
    expect(messageOf({ body, model: "claude" })).toBe("accepted");
    const many = points(undefined, undefined, undefined, undefined, undefined);
    expect(messageOf({ body: many, model: "claude" })).toContain("A maximum of 4 blocks");
  });

  test("has the cached tokens by lifetime in its usage", () => {
    const cache = new PromptCache();
    const long = (ttl: string, words: string) => [
      text(words.repeat(1500)),
      { cachePoint: { type: "default", ttl } },
    ];
    const system = long("1h", "word ");
    const ask = (...content: object[]) =>
      read({ body: { system, messages: [user(...content)] }, model: "claude", cache }).cache;
    const first = ask(...long("5m", "more "));
    expect(first?.written["1h"]).toBeGreaterThan(1500);
    expect(first?.written["5m"]).toBeGreaterThan(1400);
    expect((first?.written["1h"] ?? 0) + (first?.written["5m"] ?? 0)).toBe(
      first?.writeTokens ?? -1,
    );
    const second = ask(...long("5m", "else "));
    expect(second?.readTokens).toBe(first?.written["1h"] ?? 0);
    expect(second?.written["1h"]).toBe(0);
    expect(second?.written["5m"]).toBe(second?.writeTokens ?? 0);
  });

  test("writes a cached prefix once and reads it afterwards", () => {
    const cache = new PromptCache();
    const system = [text("word ".repeat(1500)), { cachePoint: { type: "default" } }];
    const ask = (words: string) =>
      read({ body: { system, messages: [user(text(words))] }, model: "claude", cache });
    const first = ask("one");
    expect(first.cache?.readTokens).toBe(0);
    expect(first.cache?.writeTokens).toBeGreaterThan(1500);
    expect(first.cache?.writeTokens).toBeLessThan(first.promptTokens);
    expect(ask("two").cache).toMatchObject({
      readTokens: first.cache?.writeTokens ?? 0,
      writeTokens: 0,
    });
    const short = [text("word"), { cachePoint: { type: "default" } }];
    const body = { ...hello, system: short };
    expect(read({ body, cache }).cache).toMatchObject({ readTokens: 0, writeTokens: 0 });
    expect(read({ body: hello, cache }).cache).toBeUndefined();
  });
});
