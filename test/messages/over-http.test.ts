import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startSimulator } from "../../simulator/simulator.ts";
import { bedrockUpstream, startGateway, type TestGateway, chatKinds } from "../support/gateway.ts";
import { dataOf, type MessageBody, user } from "./messages.ts";

const models = `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: sound }]
  broken-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: fault-error-event-mid-stream }]
  busy-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: fault-overloaded-503 }]
  slow-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: fault-slow-first-byte }]
  small-model:
    kind: chat
    context_window: 100
    max_output_tokens: 64
    targets: [{ upstream: simulator, model: sound }]
  embedding-model:
    kind: embedding
    context_window: 8000
    targets: [{ upstream: simulator, model: embed }]`;
const plans = `
  enterprise: { custom: true, provisioned: true, idempotency: true }
  pilot: { requests_per_minute: 60, tokens_per_minute: 100000 }
  few: { requests_per_minute: 2, tokens_per_minute: 1000000 }`;
const environments = `
  - name: test
    hosts: ["*"]
    models: ["*"]
    aliases: { claude-opus-9: chat-model, claude-*: small-model, claude-sonnet-*: chat-model }`;

const weather = {
  name: "get_weather",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sections: { models, plans, environments } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

function send(body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const request = { model: "chat-model", max_tokens: 100, messages: [user("echo: Hi")], ...body };
  return gateway.post("/v1/messages?beta=true", request, { headers });
}

async function answerOf(body: object): Promise<MessageBody> {
  const response = await send(body);
  expect(response.status).toBe(200);
  return (await response.json()) as MessageBody;
}

async function refusalOf(response: Response) {
  const { type, error, request_id } = (await response.json()) as {
    type: string;
    error: { type: string; message: string; details?: object };
    request_id: string;
  };
  expect(type).toBe("error");
  expect(response.headers.get("request-id")).toMatch(/^req_[0-9a-f]{32}$/);
  if (request_id !== null) expect(response.headers.get("request-id")).toBe(request_id);
  const retried = response.headers.get("x-should-retry");
  return { status: response.status, ...error, isRetried: retried === "true" };
}

describe.each(chatKinds)("with kind %s,", (kind) => {
  let other: TestGateway;
  beforeAll(async () => {
    other = await startGateway({ kind });
  });
  afterAll(() => other[Symbol.asyncDispose]());

  const request = { model: "chat-model", max_tokens: 100, messages: [user("echo: Hi there")] };

  test("a message is answered whole, and the same as a stream", async () => {
    const response = await other.post("/v1/messages", request);
    const whole = (await response.json()) as MessageBody;
    expect([response.status, whole]).toMatchObject([
      200,
      {
        type: "message",
        role: "assistant",
        model: "chat-model",
        content: [{ type: "text", text: "Hi there" }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { output_tokens: 2, cache_read_input_tokens: 0 },
      },
    ]);
    expect(whole.id).toBe(`msg_${response.headers.get("request-id")?.slice(4)}`);
    const streaming = await other.post("/v1/messages", { ...request, stream: true });
    const events = dataOf(await streaming.text());
    expect(events.map(({ type }) => type)).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(events.at(-2)).toMatchObject({ usage: whole.usage });
  });

  test("a tool is called, and its result answered", async () => {
    const asked = { ...request, tools: [weather], tool_choice: { type: "any" } };
    const called = (await (await other.post("/v1/messages", asked)).json()) as MessageBody;
    expect(called).toMatchObject({
      content: [{ type: "tool_use", name: "get_weather", input: { city: expect.any(String) } }],
      stop_reason: "tool_use",
    });
    const [use] = called.content;
    const result = { type: "tool_result", tool_use_id: use?.id, content: "sunny" };
    const messages = [
      ...asked.messages,
      { role: "assistant", content: called.content },
      { role: "user", content: [result, { type: "text", text: "echo: It is sunny." }] },
    ];
    const answer = await other.post("/v1/messages", { ...request, messages, tools: [weather] });
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { content: [{ type: "text", text: "It is sunny." }], stop_reason: "end_turn" },
    ]);
  });

  test("a thought in a message of its own goes with the call after it", async () => {
    const use = { type: "tool_use", id: "t1", name: "get_weather", input: { city: "Oslo" } };
    const thought = { type: "thinking", thinking: "hm", signature: "foreign" };
    const result = { type: "tool_result", tool_use_id: "t1", is_error: true, content: "none" };
    const messages = [
      ...request.messages,
      { role: "assistant", content: [thought] },
      { role: "assistant", content: [use] },
      { role: "user", content: [result] },
    ];
    const answer = await other.post("/v1/messages", { ...request, messages, tools: [weather] });
    expect(await answer.json()).toMatchObject({
      content: [{ text: expect.stringContaining("get_weather says") }],
    });
  });

  test("results of a search in a tool's result are read by the model", async () => {
    const use = { type: "tool_use", id: "t1", name: "get_weather", input: {} };
    const found = {
      type: "search_result",
      source: "https://a.example",
      title: "Weather",
      content: [{ type: "text", text: "It snows in Bergen." }],
      citations: { enabled: true },
    };
    const messages = [
      ...request.messages,
      { role: "assistant", content: [use] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: [found] }] },
    ];
    const answer = await other.post("/v1/messages", { ...request, messages, tools: [weather] });
    expect(await answer.json()).toMatchObject({
      content: [{ text: expect.stringContaining("It snows in Bergen.") }],
    });
  });

  test("options of Claude's own never break a call", async () => {
    const response = await other.post(
      "/v1/messages?beta=true",
      {
        ...request,
        system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
        messages: [...request.messages, { role: "system", content: "now" }, user("echo: Hi there")],
        thinking: { type: "adaptive", display: "omitted" },
        output_config: { effort: "high" },
        context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
        metadata: { user_id: JSON.stringify({ device_id: "d".repeat(64), session_id: "s" }) },
        cache_control: { type: "ephemeral" },
        tools: [{ ...weather, eager_input_streaming: true, defer_loading: true }],
        mcp_servers: [],
        speed: "fast",
      },
      {
        headers: { "anthropic-beta": "of-tomorrow-2027-01-01", "anthropic-version": "2026-10-21" },
      },
    );
    expect([response.status, await response.json()]).toMatchObject([200, { type: "message" }]);
  });
});

test("the name that was asked for is echoed: whole names win, then the longest beginning", async () => {
  for (const [model, cap] of [
    ["claude-opus-9", 200_000],
    ["claude-sonnet-5-5", 200_000],
    ["claude-haiku-4-5", 100],
  ] as const) {
    const answer = await answerOf({ model });
    expect(answer.model).toBe(model);
    const found = await gateway.get(`/v1/models/${model}`, {
      headers: { "anthropic-version": "2023-06-01" },
    });
    expect(await found.json()).toMatchObject({ type: "model", id: model, max_input_tokens: cap });
  }
  const chat = { model: "claude-opus-9", messages: [user("echo: Hi")] };
  const answered = await gateway.post("/v1/chat/completions", chat);
  expect(await answered.json()).toMatchObject({ model: "claude-opus-9" });
  const rows = await gateway.usage();
  expect(rows[0]?.model).toBe("chat-model");
});

test("a cap above the model's longest answer is lowered, and the caller is told", async () => {
  const response = await send({ max_tokens: 128_000 });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-sluice-adjusted-parameters")).toContain("max_tokens=64000");
  const within = await send({ max_tokens: 64_000 });
  expect(within.headers.get("x-sluice-adjusted-parameters") ?? "").not.toContain("max_tokens");
});

test("a large cap reserves as none does, a small one as it is", async () => {
  for (const max_tokens of [20_000, 32_000, 128_000]) await send({ max_tokens });
  const rows = await gateway.usage();
  const [largest = 0, half = 0, small = 0] = rows.map(({ reservedTokens }) => reservedTokens);
  expect(small).toBeGreaterThan(20_000);
  for (const reserved of [largest, half]) expect(reserved).toBeLessThan(20_000);
});

test("tools of the provider are left out, and the caller is told", async () => {
  const search = { type: "web_search_20250305", name: "web_search" };
  const response = await send({ tools: [search, weather] });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-sluice-adjusted-parameters")).toContain("server_tools=dropped");
});

describe("errors", () => {
  test("of the key say where to send it, and are not retried", async () => {
    const url = `${gateway.url}/v1/messages`;
    for (const headers of [{}, { "x-api-key": "sk-wrong" }, { authorization: "Bearer no" }]) {
      const response = await fetch(url, { method: "POST", body: "{}", headers });
      expect(await refusalOf(response)).toMatchObject({
        status: 401,
        type: "authentication_error",
        isRetried: false,
      });
    }
  });

  test("of wrong keys in a flood have the same shape, made once", async () => {
    const wrong = { "x-api-key": "sk-wrong" };
    const refused = await Promise.all(Array.from({ length: 60 }, () => send({}, wrong)));
    for (const { type, message } of await Promise.all(refused.map(refusalOf))) {
      expect(type).toBe("authentication_error");
      expect(message).toContain("x-api-key: YOUR_KEY");
    }
  });

  test("x-api-key wins over a bearer, which an empty one leaves", async () => {
    const right = { "x-api-key": gateway.key, authorization: "Bearer wrong" };
    expect((await send({}, right)).status).toBe(200);
    expect((await send({}, { "x-api-key": "sk-wrong" })).status).toBe(401);
    expect((await send({}, { "x-api-key": "" })).status).toBe(200);
  });

  test("of the model are 404 if it does not exist, and 400 if it cannot be used", async () => {
    expect(await refusalOf(await send({ model: "nothing" }))).toMatchObject({
      status: 404,
      type: "not_found_error",
      message: expect.stringContaining("nothing"),
    });
    const { text } = await gateway.createKey({ allowedModels: ["small-model"] });
    for (const response of [
      await send({ model: "embedding-model" }),
      await send({}, { "x-api-key": text }),
    ]) {
      expect(await refusalOf(response)).toMatchObject({
        status: 400,
        type: "invalid_request_error",
      });
    }
    expect((await send({ model: "claude-x" }, { "x-api-key": text })).status).toBe(200);
  });

  test("of a prompt that is too long have the words after which clients compact", async () => {
    const refused = await refusalOf(
      await send({ model: "small-model", messages: [user("word ".repeat(400))] }),
    );
    expect(refused).toMatchObject({ status: 400, type: "invalid_request_error" });
    expect(refused.message).toMatch(/^prompt is too long: \d+ tokens > 100 maximum$/);
  });

  test("of a limit have Anthropic's headers", async () => {
    const { text } = await gateway.createKey({ plan: "few" });
    const key = { "x-api-key": text };
    const first = await send({}, key);
    expect(first.headers.get("anthropic-ratelimit-requests-remaining")).toBe("1");
    await send({}, key);
    for (const _repeated of [1, 2]) {
      const response = await send({}, key);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
      const reset = response.headers.get("anthropic-ratelimit-requests-reset") ?? "";
      expect(reset).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(Date.parse(reset)).toBeGreaterThan(Date.now());
      expect(await refusalOf(response)).toMatchObject({ status: 429, type: "rate_limit_error" });
    }
  });

  test("of a busy provider are 529, and of a body 413 or 400", async () => {
    expect(await refusalOf(await send({ model: "busy-model" }))).toMatchObject({
      status: 529,
      type: "overloaded_error",
      isRetried: true,
    });
    const large = "x".repeat(gateway.config.http.bodyLimitBytes);
    expect(await refusalOf(await send({ messages: [user(large)] }))).toMatchObject({
      status: 413,
      type: "request_too_large",
    });
    const broken = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      body: "{",
      headers: { "x-api-key": gateway.key, "content-type": "application/json" },
    });
    expect(await refusalOf(broken)).toMatchObject({ status: 400, type: "invalid_request_error" });
  });

  test("of endpoints that are not served are 501, and of methods 405", async () => {
    for (const path of ["batches", "batches/b/results", "count_tokens/x"]) {
      const response = await gateway.post(`/v1/messages/${path}`, {});
      expect(await refusalOf(response)).toMatchObject({
        status: 501,
        type: "not_supported",
        isRetried: false,
      });
    }
    const wrong = await gateway.get("/v1/messages");
    expect(await refusalOf(wrong)).toMatchObject({ status: 405, type: "invalid_request_error" });
  });

  test("of a deadline are 504", async () => {
    const response = await send({ model: "slow-model" }, { "x-sluice-timeout-ms": "50" });
    expect(await refusalOf(response)).toMatchObject({ status: 504, type: "timeout_error" });
  });

  test("within a stream are its last event", async () => {
    const response = await send({ model: "broken-model", stream: true });
    const events = dataOf(await response.text());
    expect(events[0]?.["type"]).toBe("message_start");
    expect(events.at(-1)).toEqual({
      type: "error",
      error: { type: "overloaded_error", message: expect.any(String) },
      request_id: response.headers.get("request-id"),
    });
  });
});

describe("counting tokens", () => {
  const request = { model: "chat-model", messages: [user("Hello there")], tools: [] };

  test("needs no cap, and says that it is an estimate where no target counts", async () => {
    const response = await gateway.post("/v1/messages/count_tokens?beta=true", request);
    expect(await response.json()).toEqual({ input_tokens: expect.any(Number) });
    expect(response.headers.get("x-sluice-estimate")).toBe("true");
  });

  test("is exact where one does", async () => {
    await using simulator = startSimulator();
    const upstreams = `{ b: ${bedrockUpstream(simulator.origin, "count_tokens: true")} }`;
    const identifier = "us.anthropic.claude-sonnet-4-20250514-v1:0";
    const sections = {
      upstreams,
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: b, model: "${identifier}" }]`,
    };
    await using bedrock = await startGateway({ sections });
    const response = await bedrock.post("/v1/messages/count_tokens", request);
    const { input_tokens: counted } = (await response.json()) as { input_tokens: number };
    expect(response.headers.get("x-sluice-estimate")).toBeNull();
    const answer = await bedrock.post("/v1/messages", { ...request, max_tokens: 10 });
    expect(await answer.json()).toMatchObject({ usage: { input_tokens: counted } });
    // The upstream refuses to count what is too long, which is what its caller wants to learn.
    simulator.setFaultPlan([{ mode: "context-overflow" }]);
    const estimated = await bedrock.post("/v1/messages/count_tokens", request);
    expect(estimated.status).toBe(200);
    expect(estimated.headers.get("x-sluice-estimate")).toBe("true");
  });

  test("has a window of its own: many at once leave the calls of a small key alone", async () => {
    const { text } = await gateway.createKey({ plan: "pilot" });
    const headers = { "x-api-key": text };
    const counts = await Promise.all(
      Array.from({ length: 50 }, () =>
        gateway.post("/v1/messages/count_tokens", request, { headers }),
      ),
    );
    expect(new Set(counts.map(({ status }) => status))).toEqual(new Set([200]));
    const answer = await send({}, headers);
    expect(answer.headers.get("anthropic-ratelimit-requests-remaining")).toBe("59");
    const { text: few } = await gateway.createKey({ plan: "few" });
    const statuses: number[] = [];
    for (let count = 0; count < 3; count += 1) {
      const response = await gateway.post("/v1/messages/count_tokens", request, {
        headers: { "x-api-key": few },
      });
      statuses.push(response.status);
      if (response.status === 429) {
        expect((await refusalOf(response)).message).toContain("counts of tokens in application");
      }
    }
    expect(statuses).toEqual([200, 200, 429]);
  });
});

describe("the list of models", () => {
  const version = { "anthropic-version": "2023-06-01" };

  async function page(query: string) {
    const response = await gateway.get(`/v1/models${query}`, { headers: version });
    return (await response.json()) as {
      data: { id: string }[];
      has_more: boolean;
      first_id: string | null;
      last_id: string | null;
    };
  }

  test("is in Anthropic's shape for its clients, in OpenAI's for others", async () => {
    const all = await page("?limit=1000");
    expect(all.data.map(({ id }) => id)).toEqual([
      "chat-model",
      "broken-model",
      "busy-model",
      "slow-model",
      "small-model",
      "claude-opus-9",
    ]);
    expect(all).toMatchObject({
      has_more: false,
      first_id: "chat-model",
      last_id: "claude-opus-9",
    });
    expect(await (await gateway.get("/v1/models")).json()).toMatchObject({ object: "list" });
  });

  test("comes in pages", async () => {
    const ids: string[] = [];
    let after = "";
    for (;;) {
      const { data, has_more: hasMore, last_id: last } = await page(`?limit=2${after}`);
      ids.push(...data.map(({ id }) => id));
      if (!hasMore) break;
      after = `&after_id=${last}`;
    }
    expect(ids).toHaveLength(6);
    const before = await page("?limit=1&before_id=small-model");
    expect(before).toMatchObject({ data: [{ id: "slow-model" }], has_more: true });
  });

  test("is refused in Anthropic's shape, with the key from either header", async () => {
    const wrong = await fetch(`${gateway.url}/v1/models`, { headers: version });
    expect(await refusalOf(wrong)).toMatchObject({ status: 401, type: "authentication_error" });
    const headers = { ...version, "x-api-key": gateway.key };
    expect((await fetch(`${gateway.url}/v1/models`, { headers })).status).toBe(200);
    const limit = await gateway.get("/v1/models?limit=0", { headers: version });
    expect((await refusalOf(limit)).message).toStartWith("limit: ");
    const missing = await gateway.get("/v1/models/none", { headers: version });
    expect(await refusalOf(missing)).toMatchObject({ status: 404, type: "not_found_error" });
  });
});

test("a silent stream has pings, also before its start", async () => {
  const streams = "{ hold_headers: 50ms, keep_alive_interval: 1s }";
  await using silent = await startGateway({ sections: { models, streams } });
  const body = { model: "slow-model", max_tokens: 9, messages: [user("echo: Hi")], stream: true };
  const types = dataOf(await (await silent.post("/v1/messages", body)).text()).map(
    ({ type }) => type,
  );
  expect(types.filter((type) => type === "ping").length).toBeGreaterThanOrEqual(2);
  expect(types.filter((type) => type !== "ping")[0]).toBe("message_start");
  expect(types.at(-1)).toBe("message_stop");
});

test("browsers may read the headers of this dialect", async () => {
  const response = await gateway.post(
    "/v1/messages",
    {},
    { headers: { origin: "https://a.example" } },
  );
  expect(response.headers.get("access-control-expose-headers")).toContain(" request-id, ");
});

test("a repeat with an Idempotency-Key gets the same message", async () => {
  const key = { "idempotency-key": "m" };
  const first = await (await send({ stream: true }, key)).text();
  const again = await send({ stream: true }, key);
  expect([again.headers.get("idempotent-replayed"), await again.text()]).toEqual(["true", first]);
  expect(again.headers.get("anthropic-ratelimit-tokens-limit")).toBeNull();
  const broken = { model: "broken-model", stream: true };
  for (const _time of [1, 2]) {
    const response = await send(broken, { "idempotency-key": "broken" });
    expect(response.headers.get("idempotent-replayed")).toBeNull();
    expect(await response.text()).toContain("event: error");
  }
});
