import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { objectOf } from "../../src/domain/json-fields.ts";
import { chatKinds, startGateway, type TestGateway } from "../support/gateway.ts";
import { runsOf } from "../support/requirement.ts";
import { eventsIn } from "./response-events.ts";

const id = fc.constantFrom("a", "b", "c");
const text = fc.constantFrom("hello", "", "some json", "count: 3");
const part = fc.oneof(
  fc.record({ type: fc.constantFrom("input_text", "output_text"), text }),
  fc.record({ type: fc.constant("refusal"), refusal: text }),
  fc.record({
    type: fc.constant("input_image"),
    image_url: fc.constantFrom("data:image/png;base64,iVBORw0KGgo=", "https://127.0.0.1/a.png"),
  }),
  fc.record({ type: fc.constant("a_part_of_next_month") }),
);
const content = fc.oneof(text, fc.array(part, { maxLength: 3 }));
const item = fc.oneof(
  { weight: 3, arbitrary: fc.record({ role: fc.constantFrom("user", "assistant"), content }) },
  fc.record({ role: fc.constantFrom("system", "developer"), content: text }),
  fc.record({
    type: fc.constant("function_call"),
    call_id: id,
    name: fc.constantFrom("look", "gone"),
    namespace: fc.constantFrom("g", "functions"),
    arguments: fc.constantFrom("{}", '{"a":1}', "not json", ""),
  }),
  fc.record({ type: fc.constant("custom_tool_call"), call_id: id, name: id, input: text }),
  fc.record({
    type: fc.constantFrom("function_call_output", "custom_tool_call_output"),
    call_id: id,
    output: content,
  }),
  fc.record({
    type: fc.constant("reasoning"),
    summary: fc.array(fc.record({ type: fc.constant("summary_text"), text }), { maxLength: 2 }),
    encrypted_content: fc.constantFrom("redacted:x", "s1.abc.def", "sig", null),
  }),
  fc.record({ type: fc.constant("item_reference"), id: fc.constantFrom("rs_1", "msg_1") }),
  fc.record({ type: fc.constantFrom("web_search_call", "mcp_list_tools", "of_next_month") }),
  fc.record({ type: fc.constant("agent_message"), author: id, content }),
);
const look = { type: "function", name: "look", parameters: { type: "object" } };
const tools = [
  look,
  { type: "custom", name: "a" },
  { type: "namespace", name: "g", tools: [look] },
  { type: "web_search" },
];
const body = fc.record(
  {
    input: fc.array(item, { minLength: 1, maxLength: 8 }),
    instructions: text,
    tools: fc.subarray(tools, { minLength: 1 }),
    tool_choice: fc.constantFrom<unknown>(
      "auto",
      "none",
      "required",
      { type: "function", name: "look" },
      { type: "allowed_tools", mode: "auto", tools: [{ type: "custom", name: "a" }] },
    ),
    include: fc.constant(["reasoning.encrypted_content"]),
    reasoning: fc.record({ effort: fc.constantFrom("none", "low", "max") }),
    max_output_tokens: fc.constantFrom(16, 1_000),
    text: fc.record({ verbosity: fc.constantFrom("low", "high") }),
    parallel_tool_calls: fc.boolean(),
    temperature: fc.constantFrom(0, 1),
    stream: fc.boolean(),
    store: fc.boolean(),
    metadata: fc.constant({ a: "b" }),
  },
  { requiredKeys: ["input"] },
);

describe.each(chatKinds)("on kind %s,", (kind) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ kind });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test("any items are answered or refused with a field, never with an error of ours", async () => {
    await fc.assert(
      fc.asyncProperty(body, async (sent) => {
        const response = await gateway.post("/v1/responses", { model: "chat-model", ...sent });
        const answer = await response.text();
        if (response.status === 200 && sent.stream === true) {
          const last = eventsIn(answer).at(-1)?.["type"];
          expect(["response.completed", "response.incomplete"]).toContain(String(last));
          return;
        }
        const value = objectOf(JSON.parse(answer));
        if (response.status === 200) {
          expect(["completed", "incomplete"]).toContain(String(value?.["status"]));
          return;
        }
        expect(response.status).toBe(400);
        const error = objectOf(value?.["error"]);
        // Fields of chat completions would mislead.
        expect(String(error?.["param"])).not.toMatch(/^messages|tool_calls|max_tokens/);
        expect(String(error?.["message"])).not.toMatch(/\bmessages\[/);
      }),
      { numRuns: runsOf(600) },
    );
  });
});
