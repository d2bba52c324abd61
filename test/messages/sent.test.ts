import { afterAll, beforeAll, expect, test } from "bun:test";
import { completion, jsonAnswer, ScriptedUpstream } from "../golden/scripted-upstream.ts";
import { dataOf, user } from "./messages.ts";

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start();
});
afterAll(() => upstream[Symbol.asyncDispose]());

async function sentFor(body: object, key = upstream.gateway.key) {
  upstream.answerWith(jsonAnswer(completion({ content: "Hi" })));
  const request = { model: "chat-model", max_tokens: 100, messages: [user("Hello")], ...body };
  const headers = { "x-api-key": key };
  const response = await upstream.gateway.post("/v1/messages", request, { headers });
  expect([response.status, await response.json()]).toMatchObject([200, { type: "message" }]);
  return upstream.requests.at(-1) ?? {};
}

test("a conversation reaches a server of chat completions in its words", async () => {
  const sent = await sentFor({
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    messages: [
      user("Look."),
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "foreign" },
          { type: "text", text: "I look." },
          { type: "tool_use", id: "toolu_1", name: "look", input: { at: "a" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", is_error: true, content: "dark" },
          { type: "text", text: "Go on." },
        ],
      },
    ],
    tools: [{ name: "look", description: "Looks", input_schema: { type: "object" } }],
    tool_choice: { type: "any", disable_parallel_tool_use: true },
    stop_sequences: ["END"],
    temperature: 0.5,
    top_p: 0.9,
    thinking: { type: "adaptive" },
    output_config: { effort: "high" },
    context_management: { edits: [] },
    betas: ["of-tomorrow"],
  });
  expect(sent).toMatchObject({
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Look." },
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [
          {
            id: "toolu_1",
            type: "function",
            function: { name: "look", arguments: '{"at":"a"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "toolu_1", content: "Error: dark" },
      { role: "user", content: "Go on." },
    ],
    tools: [{ type: "function", function: { name: "look", description: "Looks" } }],
    tool_choice: "required",
    parallel_tool_calls: false,
    stop: ["END"],
    temperature: 0.5,
    top_p: 0.9,
    reasoning_effort: "high",
  });
  const caps = [sent["max_tokens"], sent["max_completion_tokens"]];
  expect(caps.filter((cap) => cap !== undefined)).toEqual([100]);
  expect(Object.keys(sent)).not.toContain("context_management");
  expect(JSON.stringify(sent)).not.toContain("foreign");
});

test("the name of an end user leaves as a pseudonym, another one for each account", async () => {
  const metadata = { user_id: JSON.stringify({ device_id: "d".repeat(64), session_id: "s" }) };
  const first = await sentFor({ metadata });
  const again = await sentFor({ metadata });
  const { text } = await upstream.gateway.createKey({ account: "another-account" });
  const other = await sentFor({ metadata }, text);
  expect(first["user"]).toMatch(/^eu_[0-9A-Za-z]{16}$/);
  expect(again["user"]).toBe(first["user"]);
  expect(other["user"]).not.toBe(first["user"]);
  expect((await sentFor({}))["user"]).toBeUndefined();
});

function chunk(delta: object, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: null, ...more }];
  return `data: ${JSON.stringify({ id: "c", model: "m", choices })}\n\n`;
}

test("a stream of chat chunks becomes Anthropic's events, in this order", async () => {
  const call = (index: number, fields: object) => ({ tool_calls: [{ index, ...fields }] });
  const named = (id: string, name: string) => ({ id, type: "function", function: { name } });
  const counts = {
    prompt_tokens: 20,
    completion_tokens: 9,
    prompt_tokens_details: { cached_tokens: 12 },
    completion_tokens_details: { reasoning_tokens: 4 },
  };
  upstream.answerWith({
    headers: { "content-type": "text/event-stream" },
    pieces: [
      chunk({ role: "assistant", reasoning_content: "Let me " }),
      chunk({ reasoning_content: "see." }),
      chunk({ content: "I " }),
      chunk({ content: "look." }),
      chunk(call(0, named("call_1", "look"))),
      chunk(call(0, { function: { arguments: '{"at"' } })),
      chunk(call(0, { function: { arguments: ':"a"}' } })),
      chunk(call(1, named("call_2", "ring"))),
      chunk({}, { finish_reason: "tool_calls" }),
      `data: ${JSON.stringify({ id: "c", model: "m", choices: [], usage: counts })}\n\n`,
      "data: [DONE]\n\n",
    ],
  });
  const tools = ["look", "ring"].map((name) => ({ name, input_schema: { type: "object" } }));
  const body = {
    model: "chat-model",
    max_tokens: 100,
    messages: [user("Hi")],
    tools,
    stream: true,
  };
  const response = await upstream.gateway.post("/v1/messages", body);
  const events = dataOf(await response.text());
  const begun = (index: number, content_block: object) => ({
    type: "content_block_start",
    index,
    content_block,
  });
  const delta = (index: number, fields: object) => ({
    type: "content_block_delta",
    index,
    delta: fields,
  });
  const stop = (index: number) => ({ type: "content_block_stop", index });
  const json = (partial_json: string) => ({ type: "input_json_delta", partial_json });
  const id = expect.stringMatching(/^call_/);
  expect(events.slice(1)).toEqual([
    begun(0, { type: "thinking", thinking: "", signature: "" }),
    delta(0, { type: "thinking_delta", thinking: "Let me " }),
    delta(0, { type: "thinking_delta", thinking: "see." }),
    stop(0),
    begun(1, { type: "text", text: "" }),
    delta(1, { type: "text_delta", text: "I " }),
    delta(1, { type: "text_delta", text: "look." }),
    stop(1),
    begun(2, { type: "tool_use", id, name: "look", input: {} }),
    delta(2, json("")),
    delta(2, json('{"at"')),
    delta(2, json(':"a"}')),
    stop(2),
    begun(3, { type: "tool_use", id, name: "ring", input: {} }),
    delta(3, json("")),
    delta(3, json("{}")),
    stop(3),
    {
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: {
        input_tokens: 8,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 12,
        output_tokens: 9,
        output_tokens_details: { thinking_tokens: 4 },
      },
    },
    { type: "message_stop" },
  ]);
});

test("a stream that is cut ends with an error, never with a whole message", async () => {
  upstream.answerWith({
    headers: { "content-type": "text/event-stream" },
    pieces: [chunk({ role: "assistant", content: "Hel" }), chunk({ content: "lo" })],
  });
  const body = { model: "chat-model", max_tokens: 100, messages: [user("Hi")], stream: true };
  const response = await upstream.gateway.post("/v1/messages", body);
  const types = dataOf(await response.text()).map(({ type }) => type);
  expect([types[0], types.at(-1)]).toEqual(["message_start", "error"]);
  expect(types).not.toContain("message_delta");
  expect(types).not.toContain("message_stop");
});
