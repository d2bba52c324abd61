import { expect, test } from "bun:test";
import type { Block, Conversation, Turn } from "../../src/domain/chat/conversation.ts";
import { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import { encodeChecked, modelWith } from "./checked-encode.ts";

/** What callers of Messages and Responses send beyond what chat has. */
const claude4 = "us.anthropic.claude-sonnet-4-20250514-v1:0";
const opus47 = "us.anthropic.claude-opus-4-7";
const nova2 = "us.amazon.nova-2-lite-v1:0";
const gptOss = "openai.gpt-oss-120b-1:0";
const mistral = "mistral.mistral-large-2402-v1:0";

const at = "messages[1].content[2]";
const text = (said: string): Block => ({ type: "text", text: said, at });
const user = (...blocks: readonly Block[]): Turn => ({ role: "user", blocks, at });
const assistant = (...blocks: readonly Block[]): Turn => ({ role: "assistant", blocks, at });
const call = (id: string, namespace?: string): Block => ({
  type: "tool-call",
  id,
  kind: "function",
  name: "look",
  namespace,
  arguments: "{}",
  at,
});
const result = (callId: string, said: string, isError?: true): Block => ({
  type: "tool-result",
  callId,
  content: [{ type: "text", text: said, at }],
  isError,
  at,
});
const look = { kind: "function", name: "look", at: "tools[0]" } as const;

function asking(turns: readonly Turn[], more: Partial<Conversation> = {}): Conversation {
  return {
    wire: "messages",
    model: "alias",
    isStreamed: false,
    turns,
    tools: [look],
    caps: [{ field: "max_tokens", tokens: 32_000, isDemanded: true }],
    options: {},
    extra: {},
    ...more,
  };
}

const hi = user(text("hi"));
const bodyOf = (identifier: string, request: Conversation) =>
  encodeChecked(request, modelWith(identifier));

function refusalOf(identifier: string, request: Conversation): string {
  try {
    encodeChecked(request, modelWith(identifier));
  } catch (error) {
    if (error instanceof UpstreamFailure) return `${error.details.param}: ${error.message}`;
  }
  throw new Error("It was encoded.");
}

test("blocks keep their order, thoughts where they stood", () => {
  const thought = (said: string): Block => {
    return { type: "reasoning", text: said, opaque: "c2ln", at };
  };
  const redacted = { type: "reasoning", text: "", opaque: "eA==", isRedacted: true, at } as const;
  const turns = [
    hi,
    assistant(thought("One."), text("I look."), call("a"), thought("Two."), redacted, call("b")),
    user(text("Both:"), result("b", "rain"), result("a", "sun", true)),
  ];
  const { body } = bodyOf(claude4, asking(turns, { thinking: { mode: "enabled", budget: 2_000 } }));
  const toolUse = (toolUseId: string) => ({ toolUse: { toolUseId, name: "look", input: {} } });
  const signed = (said: string) => ({
    reasoningContent: { reasoningText: { text: said, signature: "c2ln" } },
  });
  expect<unknown>(body.messages.slice(1)).toEqual([
    {
      role: "assistant",
      content: [
        signed("One."),
        { text: "I look." },
        toolUse("a"),
        signed("Two."),
        { reasoningContent: { redactedContent: "eA==" } },
        toolUse("b"),
      ],
    },
    {
      role: "user",
      content: [
        { toolResult: { toolUseId: "b", content: [{ text: "rain" }] } },
        { toolResult: { toolUseId: "a", content: [{ text: "sun" }], status: "error" } },
        { text: "Both:" },
      ],
    },
  ]);
  expect(body.additionalModelRequestFields).toEqual({
    thinking: { type: "enabled", budget_tokens: 2_000 },
  });
});

test("thoughts in a turn of their own stand before the assistant's next one, and go with no other", () => {
  const thought: Block = { type: "reasoning", text: "Hm", opaque: "c2ln", at };
  const request = (turns: readonly Turn[]): Conversation =>
    asking(turns, { thinking: { mode: "enabled" } });
  const split = [hi, assistant(thought), assistant(call("a")), user(result("a", "sun"))];
  expect(JSON.stringify(bodyOf(claude4, request(split)).body.messages[1])).toMatch(
    /reasoningContent.*toolUse/,
  );
  const alone = [hi, assistant(thought), hi, assistant(text("Hello"), thought), hi];
  expect(JSON.stringify(bodyOf(claude4, request(alone)).body)).not.toContain("reasoningContent");
});

test("a failed result is told in words to a model without its status, and in a text history", () => {
  const turns = [hi, assistant(call("a")), user(result("a", "no network", true))];
  const { body } = bodyOf(mistral, asking(turns));
  expect<unknown>(body.messages[2]?.content[0]).toMatchObject({
    toolResult: { content: [{ text: "The tool failed." }, { text: "no network" }] },
  });
  const plain = bodyOf(claude4, asking(turns, { tools: [] })).body;
  expect(JSON.stringify(plain)).toContain("[The tool look failed: no network]");
});

test("grouped tools are flattened everywhere, and a choice may leave out the group", () => {
  const tools = [
    { ...look, namespace: "files" },
    { ...look, namespace: "functions" },
    { kind: "custom", name: "patch", namespace: "files", at: "tools[2]" },
  ] as const;
  const turns = [
    hi,
    assistant(call("a", "files"), call("b", "functions")),
    user(result("a", "x"), result("b", "y")),
  ];
  const request = asking(turns, {
    wire: "responses",
    tools,
    toolChoice: { mode: "named", kind: "custom", name: "patch" },
  });
  const { body, context } = bodyOf(claude4, request);
  const names = body.toolConfig?.tools.flatMap((tool) =>
    "toolSpec" in tool ? [tool.toolSpec.name] : [],
  );
  expect(names).toEqual(["files__look", "look", "files__patch"]);
  expect(body.toolConfig?.toolChoice).toEqual({ tool: { name: "files__patch" } });
  expect([...context.textTools]).toEqual(["files__patch"]);
  expect(JSON.stringify(body.messages[1])).toMatch(/"name":"files__look".*"name":"look"/);
});

test("a document's text is a text file behind what is told about it", () => {
  const document: Block = {
    type: "document",
    text: "Grüße",
    filename: "notes",
    context: "From Ann.",
    at,
  };
  const { body } = bodyOf(claude4, asking([user(document)]));
  expect<unknown>(body.messages[0]?.content).toEqual([
    { text: "From Ann." },
    {
      document: {
        name: "notes",
        format: "txt",
        source: { bytes: Buffer.from("Grüße").toString("base64") },
      },
    },
  ]);
});

test("blocks of a server's own tools are left out, and the caller is told", () => {
  const foreign: Block = { type: "foreign", value: { type: "web_search_tool_result" }, at };
  const request = asking([hi, assistant(text("Found."), foreign), user(text("Go on"), foreign)]);
  const { body, adjusted } = bodyOf(claude4, request);
  expect(body.messages.length).toBe(3);
  expect([...adjusted]).toEqual([["messages", "server-blocks-dropped"]]);
  const responses = bodyOf(claude4, { ...request, wire: "responses" });
  expect([...responses.adjusted]).toEqual([["input", "server-blocks-dropped"]]);
});

test("later instructions stay in their place, behind the results of open calls", () => {
  const system: Turn = { role: "system", blocks: [text("In French.")], at };
  const turns = [
    system,
    hi,
    assistant(call("a")),
    system,
    user(result("a", "x")),
    assistant(text("ok")),
    system,
  ];
  const { body } = bodyOf(claude4, asking(turns));
  const words = "<system>\nIn French.\n</system>";
  expect<unknown>(body.system).toEqual([{ text: "In French." }]);
  expect<unknown>(body.messages[2]?.content[1]).toEqual({ text: words });
  expect<unknown>(body.messages[4]).toEqual({ role: "user", content: [{ text: words }] });
});

test.each([
  [
    claude4,
    { mode: "enabled", budget: 31_999 },
    { thinking: { type: "enabled", budget_tokens: 31_999 } },
  ],
  [
    claude4,
    { mode: "enabled", budget: 64_000 },
    { thinking: { type: "enabled", budget_tokens: 31_999 } },
  ],
  [claude4, { mode: "enabled" }, { thinking: { type: "enabled", budget_tokens: 8_192 } }],
  [
    claude4,
    { mode: "adaptive", effort: "low" },
    { thinking: { type: "enabled", budget_tokens: 2_048 } },
  ],
  [claude4, { mode: "disabled" }, undefined],
  [claude4, { effort: "high" }, undefined],
  [
    opus47,
    { mode: "enabled", budget: 31_999 },
    { thinking: { type: "adaptive" }, output_config: { effort: "high" } },
  ],
  [opus47, { mode: "enabled" }, { thinking: { type: "adaptive" } }],
  [
    opus47,
    { mode: "adaptive", effort: "max", display: "omitted" },
    { thinking: { type: "adaptive", display: "omitted" }, output_config: { effort: "max" } },
  ],
  [opus47, { effort: "low" }, { output_config: { effort: "low" } }],
  [opus47, { mode: "disabled" }, undefined],
  ["us.anthropic.claude-opus-5", { mode: "disabled" }, { thinking: { type: "disabled" } }],
  [gptOss, { mode: "enabled", budget: 9_000 }, { reasoning_effort: "medium" }],
  [gptOss, { mode: "disabled" }, { reasoning_effort: "low" }],
  [gptOss, { effort: "max" }, { reasoning_effort: "high" }],
  [
    nova2,
    { mode: "enabled" },
    { reasoningConfig: { type: "enabled", maxReasoningEffort: "medium" } },
  ],
  [nova2, { mode: "disabled" }, undefined],
  [mistral, { mode: "enabled", budget: 9_000 }, undefined],
] as const)("%s with %j sends %j", (identifier, thinking, fields) => {
  const { body } = bodyOf(identifier, asking([hi], { thinking }));
  expect<unknown>(body.additionalModelRequestFields).toEqual(fields);
});

test("a demanded cap is lowered to the longest answer, and the caller is told", () => {
  const { body, adjusted } = bodyOf("us.amazon.nova-pro-v1:0", asking([hi]));
  const most = body.inferenceConfig?.maxTokens ?? 0;
  expect(most).toBeLessThan(32_000);
  expect([...adjusted]).toEqual([["max_tokens", most]]);
});

test("of several stop sequences Claude is asked which one ended the answer", () => {
  const ask = (stop: readonly string[], wire: "messages" | "responses" = "messages") =>
    bodyOf(claude4, asking([hi], { options: { stop }, wire }));
  expect(ask(["a", "b"]).body.additionalModelResponseFieldPaths).toEqual([
    "/stop_sequence",
    "/delta/stop_sequence",
  ]);
  expect(ask(["a"]).body.additionalModelResponseFieldPaths).toBeUndefined();
  expect(ask(["a"]).context.sentStop).toBe("a");
  expect(ask(["a", "b"], "responses").body.additionalModelResponseFieldPaths).toBeUndefined();
});

test("refusals name the fields of the caller's wire", () => {
  const image: Block = { type: "image", url: "data:image/png;base64,iVBORw0KGgo=", at };
  expect(refusalOf(mistral, asking([user(image)]))).toStartWith(`${at}: ${at}: this model`);
  expect(refusalOf(claude4, asking([hi, assistant(call("a")), hi]))).toStartWith(
    "messages: Results are missing for tool calls 'a': each call must be answered by a tool_result",
  );
  const lost = [hi, assistant(text("x")), user(result("z", "x"))];
  expect(refusalOf(claude4, asking(lost))).toContain("the tool_use_id 'z' belongs to no open");
  expect(refusalOf(claude4, asking(lost, { wire: "responses" }))).toContain("the call_id 'z'");
  const strict = asking([hi], {
    wire: "responses",
    format: { type: "schema", name: "x", schema: {} },
    tools: [],
  });
  expect(refusalOf("us.meta.llama3-3-70b-instruct-v1:0", strict)).toStartWith("text.format: ");
});
