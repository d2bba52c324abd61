import { expect, test } from "bun:test";
import fc from "fast-check";
import { isObject, listOf } from "../../src/domain/json-fields.ts";
import { checkMessagesRequest } from "../../src/dialects/messages/check-request.ts";
import { checkChatRequest } from "../../src/dialects/openai-chat/chat-request.ts";
import { checkResponsesRequest } from "../../src/dialects/responses/check-request.ts";
import { readMessagesRequest } from "../../src/wires/messages/read-request.ts";
import { readResponsesRequest } from "../../src/wires/responses/read-request.ts";
import { sentToOpenAi } from "./sent-to.ts";

const text = fc.constantFrom("", " ", "hi", "error: no", "\ud83d\ude00");
const name = fc.constantFrom("f", "g", "look_up");
const ids = ["c1", "c2", "c3"] as const;
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const some = <Value>(value: fc.Arbitrary<Value>) => fc.array(value, { maxLength: 4 });

const textBlock = fc.record({ type: fc.constant("text"), text });
const image = fc.record({
  type: fc.constant("image"),
  source: fc.constantFrom(
    { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
    { type: "url", url: "https://example.com/a.png" },
  ),
});
const document = fc.record({
  type: fc.constant("document"),
  source: fc.constantFrom(
    { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
    { type: "text", media_type: "text/plain", data: "a" },
    { type: "content", content: "a" },
  ),
  title: maybe(text),
  context: maybe(text),
});
const result = fc.record({
  type: fc.constant("tool_result"),
  tool_use_id: fc.constantFrom(...ids),
  content: maybe(fc.oneof(text, some(fc.oneof(textBlock, image, document)))),
  is_error: maybe(fc.boolean()),
});
const said = fc.oneof(
  textBlock,
  fc.record({ type: fc.constant("thinking"), thinking: text, signature: text }),
  fc.record({ type: fc.constant("redacted_thinking"), data: text }),
  fc.record({
    type: fc.constant("tool_use"),
    id: fc.constantFrom(...ids),
    name,
    input: fc.constant({ a: 1 }),
  }),
  fc.constant({ type: "server_tool_use", id: "s", name: "web_search", input: {} }),
  fc.constant({ type: "compaction", content: "They met." }),
);
const message = fc.oneof(
  fc.record({
    role: fc.constant("user"),
    content: fc.oneof(text, some(fc.oneof(textBlock, image, document, result))),
  }),
  fc.record({ role: fc.constant("assistant"), content: fc.oneof(text, some(said)) }),
  fc.record({ role: fc.constant("system"), content: fc.oneof(text, some(textBlock)) }),
);
const ownTool = fc.record({
  name,
  description: maybe(text),
  input_schema: fc.constant({ type: "object", properties: {} }),
});
const messagesBody = fc.record({
  model: fc.constant("m"),
  max_tokens: fc.integer({ min: 1, max: 9 }),
  stream: maybe(fc.boolean()),
  system: maybe(fc.oneof(text, some(textBlock))),
  messages: fc.array(message, { minLength: 1, maxLength: 8 }),
  tools: maybe(fc.uniqueArray(ownTool, { selector: (tool) => tool.name, maxLength: 3 })),
  tool_choice: maybe(fc.constantFrom({ type: "auto" }, { type: "any" }, { type: "none" })),
  thinking: maybe(fc.constantFrom({ type: "enabled", budget_tokens: 1024 }, { type: "disabled" })),
  temperature: maybe(fc.double({ min: 0, max: 1, noNaN: true })),
  top_k: maybe(fc.nat()),
  stop_sequences: maybe(fc.array(fc.constant("x"), { maxLength: 4 })),
  output_config: maybe(
    fc.constantFrom(
      { effort: "low" },
      { format: { type: "json_schema", schema: { type: "object", properties: {} } } },
    ),
  ),
  metadata: maybe(fc.record({ user_id: text })),
});

const part = fc.oneof(
  fc.record({ type: fc.constant("input_text"), text }),
  fc.record({
    type: fc.constant("input_image"),
    image_url: fc.constant("data:image/png;base64,iVBORw0KGgo="),
    detail: maybe(fc.constantFrom("low", "auto")),
  }),
  fc.record({
    type: fc.constant("input_file"),
    filename: maybe(fc.constant("a.pdf")),
    file_data: fc.constant("data:application/pdf;base64,JVBERi0="),
  }),
);
const item = fc.oneof(
  fc.record({
    type: fc.constant("message"),
    role: fc.constantFrom("user", "developer", "system"),
    content: fc.oneof(text, some(fc.record({ type: fc.constant("input_text"), text }))),
  }),
  fc.record({ role: fc.constant("user"), content: some(part) }),
  fc.record({
    type: fc.constant("message"),
    role: fc.constant("assistant"),
    content: fc.oneof(
      text,
      some(
        fc.oneof(
          fc.record({ type: fc.constant("output_text"), text, annotations: fc.constant([]) }),
          fc.record({ type: fc.constant("refusal"), refusal: text }),
        ),
      ),
    ),
  }),
  fc.record({
    type: fc.constant("function_call"),
    call_id: fc.constantFrom(...ids),
    name,
    namespace: maybe(fc.constantFrom("ns", "functions")),
    arguments: fc.constant("{}"),
  }),
  fc.record({
    type: fc.constant("custom_tool_call"),
    call_id: fc.constantFrom(...ids),
    name,
    input: text,
  }),
  fc.record({
    type: fc.constantFrom("function_call_output", "custom_tool_call_output"),
    call_id: fc.constantFrom(...ids),
    output: fc.oneof(text, some(part)),
  }),
  fc.record({
    type: fc.constant("reasoning"),
    id: fc.constant("rs_1"),
    summary: some(fc.record({ type: fc.constant("summary_text"), text })),
    encrypted_content: maybe(text),
  }),
  fc.constant({ type: "web_search_call", id: "ws_1", status: "completed" }),
  fc.constant({ type: "item_of_next_year", wild: true }),
);
const flatTool = fc.record({
  type: fc.constant("function"),
  name,
  parameters: fc.constant({ type: "object", properties: {} }),
  strict: maybe(fc.boolean()),
});
const responsesTool = fc.oneof(
  flatTool,
  fc.record({ type: fc.constant("custom"), name, description: maybe(text) }),
  fc.record({
    type: fc.constant("namespace"),
    name: fc.constantFrom("ns", "functions"),
    tools: fc.array(flatTool, { minLength: 1, maxLength: 2 }),
  }),
  fc.constant({ type: "web_search" }),
);
const responsesBody = fc.record({
  model: fc.constant("m"),
  stream: maybe(fc.boolean()),
  instructions: maybe(text),
  input: fc.oneof(text, fc.array(item, { minLength: 1, maxLength: 8 })),
  tools: maybe(fc.array(responsesTool, { maxLength: 3 })),
  tool_choice: maybe(fc.constantFrom("auto", "none", "required", { type: "function", name: "f" })),
  reasoning: maybe(fc.constantFrom({ effort: "low" }, { summary: "auto" })),
  text: maybe(
    fc.constantFrom(
      { format: { type: "text" }, verbosity: "low" },
      { format: { type: "json_schema", name: "a", schema: { type: "object", properties: {} } } },
    ),
  ),
  max_output_tokens: maybe(fc.integer({ min: 16, max: 99 })),
  top_logprobs: maybe(fc.integer({ min: 0, max: 20 })),
  parallel_tool_calls: maybe(fc.boolean()),
});

/** Undefined: the dialect refuses the body. */
function conversationOf(read: () => ReturnType<typeof readMessagesRequest>) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function expectChat(conversation: ReturnType<typeof readMessagesRequest>): void {
  const { body } = sentToOpenAi(conversation);
  const messages = (listOf(body["messages"]) ?? []).filter(isObject);
  // A body without any content is nobody's to mend.
  if (messages.length === 0) return;
  checkChatRequest(structuredClone(body));
}

test("what Messages callers send is written as a valid chat request", () => {
  let count = 0;
  fc.assert(
    fc.property(messagesBody, (sent) => {
      const body: unknown = JSON.parse(JSON.stringify(sent));
      const conversation = conversationOf(() => readMessagesRequest(checkMessagesRequest(body)));
      if (conversation === undefined) return;
      count += 1;
      expectChat(conversation);
    }),
    { numRuns: 1_000 },
  );
  expect(count).toBeGreaterThan(100);
});

test("what Responses callers send is written as a valid chat request", () => {
  let count = 0;
  fc.assert(
    fc.property(responsesBody, (sent) => {
      const body: unknown = JSON.parse(JSON.stringify(sent));
      const conversation = conversationOf(() => readResponsesRequest(checkResponsesRequest(body)));
      if (conversation === undefined) return;
      count += 1;
      expectChat(conversation);
    }),
    { numRuns: 1_000 },
  );
  expect(count).toBeGreaterThan(100);
});

/** Steps of an agent: calls with words around them, then their results among the user's words. */
const step = fc
  .tuple(fc.uniqueArray(fc.constantFrom(...ids), { minLength: 1 }), fc.array(textBlock), fc.nat(9))
  .map(([called, words, seed]) => {
    const turn = called.map((id) => ({ type: "tool_use", id, name: "f", input: {} }));
    const results = called.map((id) => ({ type: "tool_result", tool_use_id: id, content: "done" }));
    return [
      { role: "assistant", content: mixed<object>(turn, words, seed) },
      // Some clients split a turn.
      ...(seed % 2 === 0
        ? [{ role: "user", content: mixed<object>(results, words, seed) }]
        : mixed<object>(results, words, seed).map((block) => ({ role: "user", content: [block] }))),
    ];
  });

function mixed<Value>(list: readonly Value[], more: readonly Value[], seed: number): Value[] {
  const all = [...list];
  more.forEach((value, index) => all.splice((seed * (index + 1)) % (all.length + 1), 0, value));
  return all;
}

test("the results of calls follow their message at once, wherever the user's words stand", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), (steps) => {
      const asked = { role: "user", content: "hi" };
      const sent = { model: "m", max_tokens: 9, messages: [asked, ...steps.flat()] };
      const { body } = sentToOpenAi(readMessagesRequest(checkMessagesRequest(sent)));
      const messages = (listOf(body["messages"]) ?? []).filter(isObject);
      const calling = messages.flatMap(({ tool_calls: calls }, index) => {
        const called = (listOf(calls) ?? []).filter(isObject).map(({ id }) => id);
        return called.length === 0 ? [] : [{ called, index }];
      });
      expect(calling).toHaveLength(steps.length);
      for (const { called, index } of calling) {
        const after = messages.slice(index + 1, index + 1 + called.length);
        expect(new Set(after.map(({ tool_call_id: id }) => id))).toEqual(new Set(called));
      }
    }),
    { numRuns: 500 },
  );
});
