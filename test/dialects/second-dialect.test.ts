import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { withNotes } from "../support/note-dialect.ts";

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
  embedding-model:
    kind: embedding
    context_window: 8000
    targets: [{ upstream: simulator, model: embed }]`;
const plans = `
  enterprise: { custom: true, provisioned: true, idempotency: true }
  few: { requests_per_minute: 2, tokens_per_minute: 1000000 }`;

let gateway: TestGateway;
beforeAll(async () => {
  const sections = { models, plans };
  gateway = await startGateway({ sections, overrides: withNotes });
});
afterAll(() => gateway[Symbol.asyncDispose]());

function send(body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(`${gateway.url}/v1/notes`, {
    method: "POST",
    body: JSON.stringify({ model: "chat-model", note: "hello", ...body }),
    headers: { "content-type": "application/json", "x-api-key": gateway.key, ...headers },
  });
}

async function refusalOf(response: Response) {
  const { type, error } = (await response.json()) as {
    type: string;
    error: { type: string; message: string };
  };
  return { status: response.status, type, error };
}

test("a call is answered in its own shape, and so is a stream", async () => {
  const whole = await send({});
  expect([whole.status, await whole.json()]).toEqual([
    200,
    { type: "note", model: "chat-model", text: expect.any(String) },
  ]);
  const stream = await send({ stream: true });
  expect(stream.headers.get("content-type")).toStartWith("text/event-stream");
  const text = await stream.text();
  expect(text).toMatch(/^event: text\n/);
  expect(text).toMatch(/event: stop\ndata: \{"tokens":[0-9]+\}\n\n$/);
  expect(text).not.toContain("[DONE]");
});

test("a key is taken from where the dialect has it, and its 401 says where that is", async () => {
  const bearer = { authorization: `Bearer ${gateway.key}`, "x-api-key": "" };
  for (const headers of [{ "x-api-key": "" }, bearer, { "x-api-key": "sk-wrong" }]) {
    const response = await send({}, headers);
    expect(response.headers.get("www-authenticate")).toBeNull();
    const { status, type, error } = await refusalOf(response);
    expect([status, type, error.type]).toEqual([401, "error", "authentication_error"]);
    expect(error.message).toEndWith("in the x-api-key header (x-api-key: YOUR_KEY).");
  }
  const listing = await fetch(`${gateway.url}/v1/models`, {
    headers: { "x-api-key": gateway.key },
  });
  expect([listing.status, listing.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
});

test("wrong keys in a flood get the same shape, made once", async () => {
  const responses = await Promise.all(
    Array.from({ length: 60 }, () => send({}, { "x-api-key": "sk-wrong" })),
  );
  const refusals = await Promise.all(responses.map(refusalOf));
  expect(new Set(refusals.map(({ error }) => error.type))).toEqual(
    new Set(["authentication_error"]),
  );
  for (const { error } of refusals) expect(error.message).toContain("x-api-key: YOUR_KEY");
});

test("a model that is not there is its 404; one of another kind is sent where it belongs", async () => {
  const missing = await refusalOf(await send({ model: "no-model" }));
  expect(missing).toMatchObject({ status: 404, error: { type: "not_found_error" } });
  const embedding = await refusalOf(await send({ model: "embedding-model" }));
  expect(embedding.error.message).toContain("use /v1/embeddings for it");
  const body = { model: "chat-model", input: "x" };
  const chat = (await (await gateway.post("/v1/embeddings", body)).json()) as {
    error: { message: string };
  };
  expect(chat.error.message).toContain("use /v1/chat/completions for it");
});

test("a key over its limit gets its 429, also when it comes again and again", async () => {
  const { text } = await gateway.createKey({ plan: "few" });
  const statuses: number[] = [];
  for (let count = 0; count < 5; count += 1) {
    const response = await send({}, { "x-api-key": text });
    statuses.push(response.status);
    if (response.status !== 429) continue;
    expect(Number(response.headers.get("retry-after-ms"))).toBeGreaterThan(0);
    expect((await refusalOf(response)).error.type).toBe("rate_limit_error");
  }
  expect(statuses).toEqual([200, 200, 429, 429, 429]);
  const other = await gateway.post(
    "/v1/chat/completions",
    { model: "chat-model", messages: [{ role: "user", content: "x" }] },
    { headers: { authorization: `Bearer ${text}` } },
  );
  expect([other.status, await other.json()]).toMatchObject([
    429,
    { error: { code: "rate_limit_exceeded" } },
  ]);
});

test("a stream that fails in the middle ends with its error frame", async () => {
  const response = await send({ model: "broken-model", stream: true });
  expect(response.status).toBe(200);
  const frames = (await response.text()).split("\n\n");
  expect(frames[0]).toMatch(/^event: text\n/);
  expect(frames.at(-2)).toMatch(
    /^event: error\ndata: \{"type":"error","error":\{"type":"api_error"/,
  );
  expect(frames.at(-1)).toBe("");
});

test("a whole stream is kept for who asks again, a broken one is not", async () => {
  const key = { "idempotency-key": "a" };
  const first = await (await send({ stream: true }, key)).text();
  const again = await send({ stream: true }, key);
  expect([again.headers.get("idempotent-replayed"), await again.text()]).toEqual(["true", first]);
  const broken = { model: "broken-model", stream: true };
  for (const _time of [1, 2]) {
    const response = await send(broken, { "idempotency-key": "b" });
    expect(response.headers.get("idempotent-replayed")).toBeNull();
    expect(await response.text()).toContain("event: error");
  }
});

test("errors before a call have the shape of the path; a path of nobody has the gateway's", async () => {
  const wrongMethod = await refusalOf(await fetch(`${gateway.url}/v1/notes`));
  expect(wrongMethod).toMatchObject({ status: 405, type: "error" });
  const response = await gateway.post("/v1/nothing", {});
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  expect([response.status, error.code]).toEqual([404, "unknown_url"]);
  expect(error.message).toContain(" and POST /v1/notes.");
});
