import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AttemptOutcome } from "../../src/domain/usage/call-routing.ts";
import {
  bedrockUpstream,
  simulatorUpstream,
  startGateway,
  targetAt,
  upstreamKinds,
  type TestGateway,
  type UpstreamKind,
} from "../support/gateway.ts";

/** A 200 without an answer is a failure of the target, so another target serves. */

type Lie = readonly [what: string, body: unknown, outcome: AttemptOutcome];

const choice = (message: unknown, finish: unknown = "stop"): object => ({
  choices: [{ index: 0, message, finish_reason: finish }],
});
const toolCall = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };

/** Errors without a status, in the forms of common servers and proxies. */
const errors: readonly Lie[] = [
  ["a bare message", { message: "no healthy upstream" }, "unavailable"],
  ["a message of a rate limit", { message: "Rate limit exceeded, slow down" }, "throttled"],
  ["a message of too many requests", { message: "Too many requests" }, "throttled"],
];

const chatLies: Readonly<Record<UpstreamKind, readonly Lie[]>> = {
  openai: [
    ["an error object", { error: { message: "boom" } }, "unavailable"],
    ["an error object of a rate limit", { error: { type: "rate_limit_error" } }, "throttled"],
    ["an error text beside its status", { error: "busy", status: 429 }, "throttled"],
    ["FastAPI's detail", { detail: "Internal error" }, "unavailable"],
    ["FastAPI's list of details", { detail: [{ loc: [], msg: "Too many requests" }] }, "throttled"],
    ["a code of the server's own", { code: 50505, message: "busy", data: null }, "unavailable"],
    ["a code as text", { code: "429", msg: "busy" }, "throttled"],
    ["no choices", { object: "chat.completion" }, "broken-answer"],
    ["choices of null", { choices: null }, "broken-answer"],
    ["a choice of null", { choices: [null] }, "broken-answer"],
    [
      "a choice of null behind another",
      { choices: [{ message: { content: "a" } }, null] },
      "broken-answer",
    ],
    ["a message of null", choice(null), "broken-answer"],
    ["no message", { choices: [{ index: 0, finish_reason: "stop" }] }, "broken-answer"],
    ["a message that is a text", choice("hello"), "broken-answer"],
    ["content that is a number", choice({ content: 42 }), "broken-answer"],
    ["content that is an object", choice({ content: { text: "a" } }), "broken-answer"],
    ["content of parts that are none", choice({ content: [1, 2] }), "broken-answer"],
    ["content of null and no reason to end", choice({ content: null }, null), "broken-answer"],
    ["tool calls that are no list", choice({ tool_calls: toolCall }), "broken-answer"],
    ["a tool call of null", choice({ tool_calls: [toolCall, null] }), "broken-answer"],
  ],
  bedrock: [
    ["a name and a message", { __type: "ThrottlingException", message: "wait" }, "throttled"],
    [
      "an unrouted request",
      { Output: { __type: "com.amazon.coral.service#UnknownOperationException" }, Version: "1.0" },
      "unavailable",
    ],
    ["no output", { stopReason: "end_turn" }, "broken-answer"],
    ["a message of null", { output: { message: null }, stopReason: "end_turn" }, "broken-answer"],
    [
      "content of null",
      { output: { message: { role: "assistant", content: null } }, stopReason: "end_turn" },
      "broken-answer",
    ],
    [
      "text that is a number",
      { output: { message: { content: [{ text: 42 }] } }, stopReason: "end_turn" },
      "broken-answer",
    ],
    [
      "a tool use that is a text",
      { output: { message: { content: [{ toolUse: "f" }] } }, stopReason: "tool_use" },
      "broken-answer",
    ],
  ],
};

const embeddingLies: Readonly<Record<UpstreamKind, readonly Lie[]>> = {
  openai: [
    ["an error object", { error: { message: "boom" } }, "unavailable"],
    ["FastAPI's detail", { detail: "Too many requests" }, "throttled"],
    ["no data", { object: "list" }, "broken-answer"],
    ["no vector", { data: [] }, "broken-answer"],
    ["an empty vector", { data: [{ index: 0, embedding: [] }] }, "broken-answer"],
    ["an empty text", { data: [{ index: 0, embedding: "" }] }, "broken-answer"],
    ["a gap in the order", { data: [{ index: 1, embedding: [1] }] }, "broken-answer"],
    ["data of null", { data: null, object: "list" }, "broken-answer"],
    ["a vector of null", { data: [{ index: 0, embedding: null }] }, "broken-answer"],
    ["an item of null", { data: [null, { index: 0, embedding: [1] }] }, "broken-answer"],
    ["a vector of texts", { data: [{ embedding: ["1"] }] }, "broken-answer"],
    ["a vector with a null", { data: [{ embedding: [1, null] }] }, "broken-answer"],
    ["a number out of bounds", '{"data":[{"embedding":[1,1e999]}]}', "broken-answer"],
    [
      "two vectors for one text",
      { data: [{ embedding: [1] }, { embedding: [2] }] },
      "broken-answer",
    ],
  ],
  bedrock: [
    ["a name and a message", { __type: "ThrottlingException", message: "wait" }, "throttled"],
    ["no vector", { inputTextTokenCount: 2 }, "broken-answer"],
    ["a vector of null", { embedding: null, inputTextTokenCount: 2 }, "broken-answer"],
    ["a vector with a null", { embedding: [1, null] }, "broken-answer"],
    ["an empty vector", { embedding: [] }, "broken-answer"],
  ],
};

describe.each(upstreamKinds)("behind kind %s, status 200 with", (kind) => {
  let body = "";
  const upstream = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(body, { headers: { "content-type": "application/json" } }),
  });
  const origin = `http://127.0.0.1:${upstream.port}`;
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ kind });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream.stop(true);
  });

  let lies = 0;
  /** A new target for each lie, because a throttled one is paused for a while. */
  async function newTarget(): Promise<void> {
    lies += 1;
    const first = `upstream: lying, priority: 1`;
    const second = `upstream: simulator, priority: 2`;
    const targets = (family: string, model: string): string =>
      `[${targetAt(kind, { model: `lie-${lies}`, family }, first)}, ` +
      `${targetAt(kind, { model, family }, second)}]`;
    await gateway.reconfigure({
      upstreams: `
  simulator: ${simulatorUpstream(gateway.simulator, kind)}
  lying: ${kind === "openai" ? `{ kind: openai, base_url: "${origin}/v1" }` : bedrockUpstream(origin)}`,
      models: `
  chat-model:
    kind: chat
    context_window: 8192
    targets: ${targets("claude-4", "simulated-chat")}
  embedding-model:
    kind: embedding
    context_window: 8192
    targets: ${targets("titan-embed-v2", "simulated-embedding")}`,
    });
  }

  /** Calls with this answer of the first target; returns its outcome if the other one served. */
  async function outcomeOf(answer: unknown, path: string, request: object): Promise<unknown> {
    await newTarget();
    body = typeof answer === "string" ? answer : JSON.stringify(answer);
    const response = await gateway.post(path, request);
    expect(response.status).toBe(200);
    await response.text();
    const [row] = await gateway.usage();
    expect(row?.target).toStartWith("simulator/");
    return row?.routing?.attempts[0]?.outcome;
  }

  const chat = { model: "chat-model", messages: [{ role: "user", content: "hi" }] };

  test.each([...errors, ...chatLies[kind]])("%s", async (_, lie, outcome) => {
    expect(await outcomeOf(lie, "/v1/chat/completions", chat)).toBe(outcome);
  });

  test.each([...errors, ...chatLies[kind]])("%s, for a stream", async (_, lie, outcome) => {
    const request = { ...chat, stream: true };
    expect(await outcomeOf(lie, "/v1/chat/completions", request)).toBe(outcome);
  });

  test.each([...errors, ...embeddingLies[kind]])("%s, for embeddings", async (_, lie, outcome) => {
    const request = { model: "embedding-model", input: "hi" };
    expect(await outcomeOf(lie, "/v1/embeddings", request)).toBe(outcome);
  });

  test("a page of a proxy, for a stream", async () => {
    const request = { ...chat, stream: true };
    const outcome = await outcomeOf("<html></html>", "/v1/chat/completions", request);
    expect(outcome).toBe("broken-answer");
  });
});
