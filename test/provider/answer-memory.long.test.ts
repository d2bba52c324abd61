import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { errorOf } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import { converse } from "./bedrock-provider.ts";
import {
  completion,
  floatsInBase64,
  gatewayOf,
  inputsOf,
  startProvider,
  vectorsAnswer,
  type Provider,
  type ProviderRequest,
} from "./provider.ts";

const dimensions = 4096;
const vector = Float32Array.from({ length: dimensions }, (_, index) => index / dimensions);
const base64 = floatsInBase64([...vector]);
/** 12 MiB of vectors; what the sockets take of its text is a part. */
const large = {
  model: "embedding-model",
  input: Array.from({ length: 768 }, () => "a"),
  encoding_format: "base64",
};

const httpWith = (wait: string): string =>
  "{ body_limit: 64KiB, decompressed_limit: 64KiB, body_memory: 64MiB, " +
  `body_memory_per_key: 12MiB, body_memory_wait: ${wait} }`;

let provider: Provider;
let gateway: TestGateway;
let other: string;
beforeAll(async () => {
  provider = startProvider(vectorsOf);
  const plans = "{ enterprise: { custom: true, idempotency: true } }";
  const sections = { http: httpWith("1m"), plans };
  gateway = await gatewayOf([provider], { sections });
  other = (await gateway.createKey()).text;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

function vectorsOf(request: ProviderRequest): Response {
  return vectorsAnswer(inputsOf(request).map(() => base64));
}

/** A call whose caller reads the first bytes of the answer, and then nothing. */
async function unread(
  { port, key }: Pick<TestGateway, "port" | "key">,
  header = "",
): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  const body = JSON.stringify(large);
  socket.write(
    `POST /v1/embeddings HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${key}\r\n` +
      `${header}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await new Promise<void>((resolve) => {
    socket.once("data", () => {
      socket.pause();
      resolve();
    });
  });
  return socket;
}

function send(key: string, fields: object = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${key}` };
  return gateway.post("/v1/embeddings", { ...large, ...fields }, { headers });
}

interface Answer {
  readonly data: readonly { readonly embedding: string }[];
}

async function expectServed(response: Response): Promise<void> {
  expect(response.status).toBe(200);
  const { data } = (await response.json()) as Answer;
  expect(data).toHaveLength(large.input.length);
  expect(data.at(-1)?.embedding).toBe(base64);
}

test("answers that nobody reads use up the memory of their key, and of no other", async () => {
  const socket = await unread(gateway);
  await gateway.reconfigure({ http: httpWith("200ms") });
  const refused = await send(gateway.key);
  await gateway.reconfigure({ http: httpWith("1m") });
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("2");
  expect(await errorOf(refused)).toMatchObject({
    code: "model_unavailable",
    message: expect.stringContaining("large answers"),
  });
  // Small answers need no memory.
  expect((await send(gateway.key, { input: ["a"] })).status).toBe(200);
  await expectServed(await send(other));
  socket.destroy();
  await expectServed(await send(gateway.key));
});

test("an answer that there is no memory for is used once, however many requests it takes", async () => {
  const sections = { http: httpWith("200ms") };
  const upstream = "embedding_batch_limit: 192";
  await using batched = await gatewayOf([provider], { sections, upstream });
  const socket = await unread(batched);
  const refused = await batched.post("/v1/embeddings", large);
  expect(refused.status).toBe(503);
  const rows = await batched.usage();
  const id = refused.headers.get("x-request-id");
  const { inputTokens = 0 } = rows.find((row) => row.id === id) ?? {};
  expect(inputTokens).toBeGreaterThan(0);
  expect(inputTokens).toBeLessThan(2 * large.input.length);
  socket.destroy();
});

test("an answer waits until another one of its key was read", async () => {
  const socket = await unread(gateway);
  const asked = provider.requests.length;
  const waiting = send(gateway.key);
  while (provider.requests.length === asked) await Bun.sleep(1);
  socket.resume();
  await expectServed(await waiting);
  socket.destroy();
});

test("a burst of one key holds up no call of another, and all of it is served", async () => {
  let isOver = false;
  const burst = Promise.all(
    Array.from({ length: 3 }, async () => {
      const response = await send(gateway.key);
      return [response.status, (await response.text()).length];
    }),
  ).finally(() => (isOver = true));
  let served = 0;
  while (!isOver) {
    const small = await send(other, { input: ["a"] });
    await small.arrayBuffer();
    if (!isOver && small.status === 200) served += 1;
  }
  const answers = await burst;
  expect(new Set(answers.map(String)).size).toBe(1);
  expect(answers[0]?.[0]).toBe(200);
  expect(served).toBeGreaterThan(3);
});

test("an answer above all that a key may hold is served when its key holds nothing else", async () => {
  const input = Array.from({ length: 1_024 }, () => "a");
  const response = await send(gateway.key, { input });
  const text = await response.text();
  expect(response.status).toBe(200);
  expect(text.length).toBeGreaterThan(input.length * base64.length);
});

test("answers that break off, and callers that leave while they wait, hold no memory", async () => {
  provider.answers((request) => {
    const isFirst = provider.requests.length === 1;
    if (!isFirst) return vectorsOf(request);
    const data = inputsOf(request).map(() => ({ embedding: base64 }));
    // The answer has no end.
    const text = JSON.stringify({ data }).slice(0, -1_000);
    return new Response(text, { headers: { "content-type": "application/json" } });
  });
  await expectServed(await send(gateway.key));
  const unreadOne = await unread(gateway);
  const leaving = new AbortController();
  const { signal } = leaving;
  const authorization = `Bearer ${gateway.key}`;
  const init = { headers: { authorization }, signal };
  const waiting = [1, 2].map(() => gateway.post("/v1/embeddings", large, init).catch(() => "left"));
  while (provider.requests.length < 5) await Bun.sleep(1);
  leaving.abort();
  expect(await Promise.all(waiting)).toEqual(["left", "left"]);
  unreadOne.destroy();
  await expectServed(await send(gateway.key));
});

test("replays that nobody reads use up the memory of their key", async () => {
  const sections = {
    http: httpWith("200ms"),
    plans: "{ enterprise: { custom: true, idempotency: true } }",
    idempotency: "{ answer_limit: 32MiB }",
  };
  await using keeping = await gatewayOf([provider], { sections });
  const headers = { "idempotency-key": "unread" };
  const first = await keeping.post("/v1/embeddings", large, { headers });
  const text = await first.text();
  const asked = provider.requests.length;
  const socket = await unread(keeping, "Idempotency-Key: unread\r\n");
  const refused = await keeping.post("/v1/embeddings", large, { headers });
  expect(refused.status).toBe(503);
  socket.destroy();
  let replayed: Response;
  do replayed = await keeping.post("/v1/embeddings", large, { headers });
  while (replayed.status === 503);
  expect(replayed.headers.get("idempotent-replayed")).toBe("true");
  expect((await replayed.text()) === text).toBe(true);
  expect(provider.requests).toHaveLength(asked);
});

test("an answer that is kept for repeats comes as a whole, each time the same", async () => {
  const headers = { "idempotency-key": "one", authorization: `Bearer ${gateway.key}` };
  provider.answers(vectorsOf);
  const input = Array.from({ length: 20 }, () => "a");
  const texts: string[] = [];
  for (let times = 0; times < 2; times += 1) {
    const response = await gateway.post("/v1/embeddings", { ...large, input }, { headers });
    // A long replay has no length.
    const isWhole = Number(response.headers.get("content-length")) > 20 * base64.length;
    expect(isWhole).toBe(times === 0);
    texts.push(await response.text());
  }
  expect(texts[0]).toBe(texts[1] ?? "");
  expect(provider.requests).toHaveLength(1);
});

/** A whole answer of 3 MB of text, the end of which comes later. */
function slowChat(end: Promise<void>): Response {
  const text = JSON.stringify(completion("x".repeat(3_000_000)));
  const body = new ReadableStream<string>({
    async start(controller) {
      controller.enqueue(text.slice(0, 1_000_000));
      await end;
      controller.enqueue(text.slice(1_000_000));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

test("long chat answers that arrive slowly use the same memory", async () => {
  const chat = { model: "chat-model", messages: [{ role: "user", content: "Hi" }] };
  const ask = (key: string): Promise<Response> =>
    gateway.post("/v1/chat/completions", chat, { headers: { authorization: `Bearer ${key}` } });
  const end = Promise.withResolvers<void>();
  let asked = 0;
  provider.answers(() => {
    asked += 1;
    return slowChat(asked === 1 ? end.promise : Promise.resolve());
  });
  await gateway.reconfigure({ http: httpWith("200ms") });
  const first = ask(gateway.key);
  while (asked === 0) await Bun.sleep(1);
  // The first one may still have to come as far as its memory.
  let refused = await ask(gateway.key);
  while (refused.status === 200) {
    await refused.arrayBuffer();
    refused = await ask(gateway.key);
  }
  expect(refused.status).toBe(503);
  expect(await errorOf(refused)).toMatchObject({ code: "model_unavailable" });
  expect((await ask(other)).status).toBe(200);
  end.resolve();
  const served = await first;
  expect([served.status, (await served.text()).length > 3_000_000]).toEqual([200, true]);
  expect((await ask(gateway.key)).status).toBe(200);
});

test("choices that take a request each use the memory of all of them", async () => {
  const upstreams = (url: string): string => `
  aws: { kind: bedrock, region: us-east-1, endpoint: "${new URL(url).origin}", api_key: "k" }
  provider-1: { kind: openai, base_url: "${url}" }`;
  const claude = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
  const models = `
  chat-model: { kind: chat, context_window: 200000, targets: [{ upstream: aws, model: "${claude}" }] }
  embedding-model: { kind: embedding, context_window: 8192, targets: [{ upstream: provider-1, model: e }] }`;
  const end = Promise.withResolvers<void>();
  let answered = 0;
  await using choices = startProvider(async (request) => {
    if (request.path.endsWith("/embeddings")) return vectorsOf(request);
    const isFirst = answered === 0;
    answered += 1;
    if (!isFirst) await end.promise;
    return converse({ text: "x".repeat(3_000_000) });
  });
  await using split = await gatewayOf([choices], {
    sections: { http: httpWith("200ms"), upstreams: upstreams(choices.url), models },
  });
  const messages = [{ role: "user", content: "Hi" }];
  const first = split.post("/v1/chat/completions", { model: "chat-model", messages, n: 4 });
  while (answered < 4) await Bun.sleep(1);
  // 4 MiB of vectors fit beside one of the four choices, and not beside them all.
  const vectors = { ...large, input: large.input.slice(0, 256) };
  let refused = await split.post("/v1/embeddings", vectors);
  for (let tries = 0; tries < 20 && refused.status === 200; tries += 1) {
    await refused.arrayBuffer();
    refused = await split.post("/v1/embeddings", vectors);
  }
  expect(refused.status).toBe(503);
  end.resolve();
  expect((await first).status).toBe(200);
});
