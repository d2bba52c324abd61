import { afterEach, expect, test } from "bun:test";
import { brotliCompressSync } from "node:zlib";
import type { TestGateway } from "../support/gateway.ts";
import { chunk, gatewayOf, startProvider, whole, type Provider } from "./provider.ts";

/**
 * Memory of bodies is counted until nothing can send them again. One of 500 kB counts twice, since
 * its parsed form and the upstream's request are in memory; a key has room for two.
 */
const http =
  "{ body_limit: 512KiB, decompressed_limit: 512KiB, body_memory: 8MiB, " +
  "body_memory_per_key: 2MiB, body_memory_wait: 0s }";
const sections = {
  http,
  streams: "{ hold_headers: 0s }",
  plans: "{ enterprise: { custom: true, idempotency: true } }",
};

/** Answers when `open` is called. */
class Silent {
  readonly #opened = Promise.withResolvers<void>();
  readonly open = (): void => this.#opened.resolve();
  readonly answer = async (): Promise<Response> => {
    await this.#opened.promise;
    return endless();
  };
}

/** A first event, and no end. */
function endless(): Response {
  const first = new TextEncoder().encode(`data: ${JSON.stringify(chunk({ content: "Hi" }))}\n\n`);
  const body = new ReadableStream<Uint8Array>({ start: (stream) => stream.enqueue(first) });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

const using: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of using.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

async function start(
  answer: () => Response | Promise<Response>,
): Promise<{ provider: Provider; gateway: TestGateway }> {
  const provider = startProvider(answer);
  const gateway = await gatewayOf([provider], { sections });
  using.push(provider, gateway);
  return { provider, gateway };
}

const large = "x".repeat(500_000);

function bodyOf(content: string, fields: object = {}): string {
  const messages = [{ role: "user", content }];
  return JSON.stringify({ model: "chat-model", stream: true, messages, ...fields });
}

const path = "/v1/chat/completions";

async function statusOf(gateway: TestGateway, body = bodyOf(large)): Promise<number> {
  const { status, body: unread } = await gateway.post(path, body);
  await unread?.cancel();
  return status;
}

test("a body is counted after the headers of its stream were sent, until its first event", async () => {
  const silent = new Silent();
  const { gateway } = await start(silent.answer);
  const held = [await gateway.post(path, bodyOf(large)), await gateway.post(path, bodyOf(large))];
  expect(held.map(({ status }) => status)).toEqual([200, 200]);
  expect(await statusOf(gateway)).toBe(503);
  silent.open();
  for (const { body } of held) await firstEvent(body);
  expect(await statusOf(gateway)).toBe(200);
});

/** Reads no further. */
async function firstEvent(body: AsyncIterable<Uint8Array> | null): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  const reading = body?.[Symbol.asyncIterator]();
  while (!text.includes("data:")) {
    const { value } = (await reading?.next()) ?? {};
    if (!(value instanceof Uint8Array)) throw new Error("the stream ended");
    text += decoder.decode(value);
  }
}

test("a compressed body is counted as what it expands to", async () => {
  const { gateway } = await start(new Silent().answer);
  const body = brotliCompressSync(bodyOf(large));
  expect(body.byteLength).toBeLessThan(1_000);
  const send = () =>
    fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${gateway.key}`,
        "content-type": "application/json",
        "content-encoding": "br",
      },
      body,
    });
  const held = [await send(), await send()];
  expect(held.map(({ status }) => status)).toEqual([200, 200]);
  expect((await send()).status).toBe(503);
  for (const { body: unread } of held) await unread?.cancel();
});

test("a text that the runtime keeps in two bytes a character is counted as such", async () => {
  const { gateway } = await start(new Silent().answer);
  const held = await gateway.post(path, bodyOf(`\u4e2d${large}`));
  expect([held.status, await statusOf(gateway)]).toEqual([200, 503]);
  await held.body?.cancel();
});

test("values that take more than their text are counted", async () => {
  const { gateway } = await start(new Silent().answer);
  const parameters = { type: "object", enum: Array.from({ length: 100_000 }, () => 1) };
  const tools = [{ type: "function", function: { name: "list", parameters } }];
  const held = [0, 1].map(() => gateway.post(path, bodyOf("Hi", { tools })));
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
  expect(await statusOf(gateway)).toBe(503);
  for (const { body } of await Promise.all(held)) await body?.cancel();
});

test("the memory is free again when a call fails after its headers, and when its caller leaves", async () => {
  let fail = (): void => undefined;
  const { gateway, provider } = await start(async () => {
    await new Promise<void>((resolve) => (fail = resolve));
    return new Response("no", { status: 400 });
  });
  for (let call = 0; call < 3; call += 1) {
    const response = await gateway.post(path, bodyOf(large));
    while (provider.requests.length <= call) await Bun.sleep(5);
    fail();
    expect([response.status, (await response.text()).includes("error")]).toEqual([200, true]);
  }
  provider.answers(new Silent().answer);
  for (let call = 0; call < 6; call += 1) {
    const left = await gateway.post(path, bodyOf(large));
    expect(left.status).toBe(200);
    await left.body?.cancel();
    while ((await gateway.usage()).length < 4 + call) await Bun.sleep(5);
  }
});

test("a repeat is counted while it waits, and makes the call when its first caller has left", async () => {
  const opened = Promise.withResolvers<void>();
  const { gateway, provider } = await start(async () => {
    await opened.promise;
    return whole("Hello");
  });
  const leaving = new AbortController();
  const body = bodyOf(large, { stream: false });
  const headers = { "idempotency-key": "one" };
  const first = gateway.post(path, body, { headers, signal: leaving.signal });
  first.catch(() => undefined);
  while (provider.requests.length === 0) await Bun.sleep(5);
  const others = [1, 2].map(() => gateway.post(path, body, { headers }));
  // There is room for one of them.
  const { status } = await Promise.race(others);
  expect(status).toBe(503);
  leaving.abort();
  await first.catch(() => undefined);
  while (provider.requests.length === 1) await Bun.sleep(5);
  opened.resolve();
  const statuses = (await Promise.all(others)).map((response) => response.status);
  expect(statuses.toSorted((one, other) => one - other)).toEqual([200, 503]);
  expect(provider.requests.length).toBe(2);
  expect(await statusOf(gateway)).toBe(200);
});

test("the keys of one account together leave a half of the memory to others", async () => {
  const { gateway } = await start(new Silent().answer);
  const keys = await Promise.all([1, 2, 3].map(() => gateway.createKey({ account: "many" })));
  // Kept, because an answer that is collected closes its connection.
  const answers: Response[] = [];
  for (const { text } of keys) {
    const headers = { authorization: `Bearer ${text}` };
    for (let call = 0; call < 2; call += 1) {
      answers.push(await gateway.post(path, bodyOf(large), { headers }));
    }
  }
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 503, 503]);
  expect(await statusOf(gateway)).toBe(200);
  expect(answers).toHaveLength(6);
});
