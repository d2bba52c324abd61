import { metricsOf } from "../support/metrics-of.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { errorOf, parseStream } from "../support/bodies.ts";
import { upstreamKinds } from "../support/gateway.ts";
import {
  chat,
  startIdempotentGateway,
  streamedChat,
  type IdempotentGateway,
  type SentCall,
} from "../support/idempotent-gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bearer, Operator } from "../support/operator.ts";

const dayMs = 86_400_000;
const embedding = { model: "embedding-model", input: "a text" };

let keys = 0;
const newKey = (): string => `order-${(keys += 1)}`;

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  let bench: IdempotentGateway;
  beforeAll(async () => {
    bench = await startIdempotentGateway({ kind });
  });
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
  });

  /** Makes the same call twice; the second must get the first's answer at no cost. */
  async function repeat(body: unknown, more: SentCall = {}): Promise<string> {
    const key = newKey();
    const callsBefore = bench.upstreamCalls();
    const rowsBefore = (await bench.gateway.usage()).length;
    const first = await bench.send(key, body, more);
    const text = await first.text();
    expect(first.status).toBe(200);
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    const second = await bench.send(key, body, more);
    expect(await second.text()).toBe(text);
    expect(second.status).toBe(200);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect(second.headers.get("content-type")).toBe(first.headers.get("content-type"));
    expect(second.headers.get("x-sluice-target")).toBe(first.headers.get("x-sluice-target"));
    expect(second.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
    expect(second.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    // The remaining limits of the first answer are outdated.
    expect(second.headers.get("x-ratelimit-remaining-requests")).toBeNull();
    expect(bench.upstreamCalls() - callsBefore).toBe(1);
    expect(await bench.gateway.usage()).toHaveLength(rowsBefore + 1);
    return text;
  }

  test("a repeated call gets the same body, and is made and billed once", async () => {
    const text = await repeat(chat("write something of your own"));
    expect(JSON.parse(text)).toMatchObject({ object: "chat.completion" });
  });

  test("a repeated stream gets the same frames, and is made and billed once", async () => {
    const fields = { stream_options: { include_usage: true } };
    const text = await repeat(streamedChat("count: 3000", fields));
    const { chunks, isDone } = parseStream(text);
    expect(isDone).toBe(true);
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(3_000);
  });

  test("repeated embeddings are the same, and are made and billed once", async () => {
    const text = await repeat(embedding, { path: "/v1/embeddings" });
    expect(JSON.parse(text)).toMatchObject({ object: "list" });
  });
});

test("a stream that the gateway ends says so, and is not kept", async () => {
  await using bench = await startIdempotentGateway({ simulator: { tokensPerSecond: 20 } });
  const key = newKey();
  const send = (): Promise<Response> =>
    bench.send(key, streamedChat("count: 400"), { headers: { "x-sluice-timeout-ms": "300" } });
  const text = await (await send()).text();
  expect(text.slice(-500)).toContain('"code":"deadline_exceeded"');
  const again = await send();
  expect(again.headers.get("idempotent-replayed")).toBeNull();
  await again.text();
});

describe("an Idempotency-Key", () => {
  let bench: IdempotentGateway;
  const clock = new ManualClock({ wallMs: Date.now() });
  beforeAll(async () => {
    bench = await startIdempotentGateway({ overrides: { clock } });
  });
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
  });

  /** Advances the clock by days, after which keys must be read again. */
  async function letPass(durationMs: number): Promise<void> {
    clock.advance(durationMs);
    await bench.gateway.app.admin.onKeysChanged();
  }

  async function statusOf(sending: Promise<Response>): Promise<number> {
    const response = await sending;
    await response.text();
    return response.status;
  }

  async function isReplay(sending: Promise<Response>): Promise<boolean> {
    const response = await sending;
    await response.text();
    expect(response.status).toBe(200);
    return response.headers.get("idempotent-replayed") === "true";
  }

  test("is refused permanently with another body, endpoint or capacity", async () => {
    const key = newKey();
    expect(await statusOf(bench.send(key, chat("echo: one")))).toBe(200);
    const others = [
      bench.send(key, chat("echo: two")),
      bench.send(key, streamedChat("echo: one")),
      bench.send(key, embedding, { path: "/v1/embeddings" }),
      bench.send(key, chat("echo: one"), { headers: { "x-sluice-capacity": "on-demand-only" } }),
    ];
    for (const other of await Promise.all(others)) {
      expect(other.status).toBe(409);
      expect(other.headers.get("x-should-retry")).toBe("false");
      expect(await errorOf(other)).toEqual({
        message: "This Idempotency-Key was used for another call. Use a new one for each call.",
        type: "invalid_request_error",
        param: "Idempotency-Key",
        code: "idempotency_key_reused",
      });
    }
    // Another path of the same endpoint, and an explicit default capacity, are the same call.
    const more = { path: "/chat/completions", headers: { "x-sluice-capacity": "auto" } };
    expect(await isReplay(bench.send(key, chat("echo: one"), more))).toBe(true);
  });

  test("belongs to one API key, with any of its secrets", async () => {
    const key = newKey();
    const [one, other] = [await bench.gateway.createKey(), await bench.gateway.createKey()];
    const send = (secret: string): Promise<boolean> =>
      isReplay(bench.send(key, chat("echo: mine"), bearer(secret)));
    expect(await send(one.text)).toBe(false);
    expect(await send(other.text)).toBe(false);
    const wish = { overlap_seconds: 3_600 };
    const rotated = await new Operator(bench.gateway).rotate(one.id, wish);
    expect(await send(rotated.api_key)).toBe(true);
    expect(await send(one.text)).toBe(true);
  });

  test.each([
    ["is empty", ""],
    ["has a space", "two words"],
    ["has letters beyond ASCII", "schl\u00fcssel"],
    ["is too long", "k".repeat(256)],
  ])("is refused if it %s", async (_, key) => {
    const before = bench.upstreamCalls();
    const response = await bench.send(key, chat("echo: hi"));
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({
      code: "invalid_value",
      param: "Idempotency-Key",
    });
    expect(bench.upstreamCalls()).toBe(before);
  });

  test("may have 255 visible characters", async () => {
    const visible = Array.from({ length: 94 }, (_, place) => String.fromCharCode(0x21 + place));
    const key = visible.join("").repeat(3).slice(0, 255);
    expect(await isReplay(bench.send(key, chat("echo: hi")))).toBe(false);
    expect(await isReplay(bench.send(key, chat("echo: hi")))).toBe(true);
  });

  test("is ignored under a plan without it, and nothing is stored", async () => {
    const { text } = await bench.gateway.createKey({ plan: "without" });
    const before = { calls: bench.upstreamCalls(), kept: bench.keptAnswers() };
    const key = newKey();
    const secret = bearer(text);
    expect(await isReplay(bench.send(key, chat("echo: hi"), secret))).toBe(false);
    expect(await isReplay(bench.send(key, chat("echo: hi"), secret))).toBe(false);
    expect(await isReplay(bench.send(key, streamedChat("echo: other"), secret))).toBe(false);
    expect(await statusOf(bench.send("not a key", chat("echo: hi"), secret))).toBe(200);
    expect(bench.upstreamCalls()).toBe(before.calls + 4);
    expect(bench.keptAnswers()).toBe(before.kept);
  });

  test("is needed for anything to be stored", async () => {
    const before = bench.keptAnswers();
    const response = await bench.gateway.post("/v1/chat/completions", chat("echo: hi"));
    expect(response.headers.get("idempotent-replayed")).toBeNull();
    expect(bench.keptAnswers()).toBe(before);
  });

  test("counts every repeat as a request, without tokens", async () => {
    const few = await bench.gateway.createKey({ plan: "few-requests" });
    const key = newKey();
    const send = (): Promise<number> =>
      statusOf(bench.send(key, chat("echo: hi", { max_tokens: 5 }), bearer(few.text)));
    expect([await send(), await send(), await send(), await send()]).toEqual([200, 200, 200, 429]);
    const tokens = await bench.gateway.createKey({ plan: "few-tokens" });
    const fields = { max_tokens: 20 };
    const body = chat("echo: hi", fields);
    const secret = bearer(tokens.text);
    const repeated = newKey();
    const statuses: number[] = [];
    for (let count = 0; count < 10; count += 1) {
      statuses.push(await statusOf(bench.send(repeated, body, secret)));
    }
    expect(new Set(statuses)).toEqual(new Set([200]));
    // Ten separate calls would have exceeded the tokens.
    statuses.length = 0;
    for (let count = 0; count < 10; count += 1) {
      statuses.push(await statusOf(bench.send(newKey(), body, secret)));
    }
    expect(statuses).toContain(429);
  });

  test("replays no serving target once the header is disabled", async () => {
    const [key, streamKey] = [newKey(), newKey()];
    const targets = async (): Promise<readonly (string | null)[]> => {
      const responses = [
        await bench.send(key, chat("echo: hi")),
        await bench.send(streamKey, streamedChat("echo: hi")),
      ];
      return Promise.all(
        responses.map((response) =>
          response.text().then(() => response.headers.get("x-sluice-target")),
        ),
      );
    };
    const shown = "simulator; model=chat-model";
    await bench.gateway.reconfigure({ routing: "{ target_header: true }" });
    expect([await targets(), await targets()]).toEqual([
      [shown, shown],
      [shown, shown],
    ]);
    await bench.gateway.reconfigure({ routing: "{ target_header: false }" });
    expect(await targets()).toEqual([null, null]);
  });

  test("is counted by the result of its call", async () => {
    const counts = async (): Promise<ReadonlyMap<string, number>> => {
      const text = await metricsOf(bench.gateway.adminUrl);
      const rows = text.matchAll(/^sluice_idempotent_answers_total\{result="(\w+)"\} (\d+)$/gm);
      return new Map(Array.from(rows, ([, result = "", count]) => [result, Number(count)]));
    };
    const before = await counts();
    const key = newKey();
    for (let count = 0; count < 3; count += 1) await isReplay(bench.send(key, chat("echo: hi")));
    const after = await counts();
    const rises = [...after].map(([result, count]) => [result, count - (before.get(result) ?? 0)]);
    expect(Object.fromEntries(rises)).toEqual({
      stored: 1,
      too_large: 0,
      evicted: 0,
      replayed: 2,
    });
  });

  test("is forgotten after a day", async () => {
    const key = newKey();
    expect(await isReplay(bench.send(key, chat("echo: hi")))).toBe(false);
    await letPass(dayMs - 60_000);
    expect(await isReplay(bench.send(key, chat("echo: hi")))).toBe(true);
    await letPass(60_000);
    expect(await isReplay(bench.send(key, chat("echo: hi")))).toBe(false);
    // Then it may identify another call.
    await letPass(dayMs);
    expect(await isReplay(bench.send(key, chat("echo: something else")))).toBe(false);
  });

  test("of a failed call has no answer: the next call is made anew", async () => {
    const key = newKey();
    const before = bench.upstreamCalls();
    bench.gateway.simulator.setFaultPlan([{ mode: "bad-request-400", times: 1 }]);
    const failed = await statusOf(bench.send(key, chat("echo: hi")));
    bench.gateway.simulator.setFaultPlan([]);
    expect(failed).toBeGreaterThanOrEqual(400);
    expect(await isReplay(bench.send(key, chat("echo: other")))).toBe(false);
    expect(await isReplay(bench.send(key, chat("echo: other")))).toBe(true);
    expect(bench.upstreamCalls()).toBe(before + 2);
  });

  test("works as the official client sends it, streamed and unstreamed", async () => {
    const client = new OpenAI({ apiKey: bench.gateway.key, baseURL: `${bench.gateway.url}/v1` });
    const options = { headers: { "Idempotency-Key": newKey() } };
    const body = { model: "chat-model", messages: [{ role: "user", content: "hi" }] } as const;
    const before = bench.upstreamCalls();
    const create = () =>
      client.chat.completions.create({ ...body, messages: [...body.messages] }, options);
    const [first, second] = [await create(), await create()];
    expect(second).toEqual(first);
    const streamOptions = { headers: { "Idempotency-Key": newKey() } };
    const stream = async (): Promise<string> => {
      const chunks = await client.chat.completions.create(
        { ...body, messages: [...body.messages], stream: true },
        streamOptions,
      );
      let text = "";
      for await (const chunk of chunks) text += chunk.choices[0]?.delta.content ?? "";
      return text;
    };
    const whole = await stream();
    expect(whole).not.toBe("");
    expect(await stream()).toBe(whole);
    expect(bench.upstreamCalls()).toBe(before + 2);
  });
});
