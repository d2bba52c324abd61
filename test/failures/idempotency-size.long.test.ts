import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { errorOf, parseStream } from "../support/bodies.ts";
import { upstreamKinds } from "../support/gateway.ts";
import {
  startIdempotentGateway,
  StreamedAnswer,
  streamedChat,
  type IdempotentGateway,
} from "../support/idempotent-gateway.ts";

let keys = 0;
const newKey = (): string => `large-${(keys += 1)}`;

/** About 32 MiB in pieces of 16 KiB: more than any connection buffers. */
const large = streamedChat("bulk: 2000");

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  let bench: IdempotentGateway;
  beforeAll(async () => {
    bench = await startIdempotentGateway({
      kind,
      simulator: { firstTokenDelayMs: 300 },
      sections: { idempotency: "{ answer_limit: 64KiB }", streams: "{ write_timeout: 20s }" },
    });
  });
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
  });

  test("an answer that is too large arrives complete, and is not repeated", async () => {
    const key = newKey();
    const before = bench.upstreamCalls();
    const running = new StreamedAnswer(await bench.send(key, large));
    const waiting = bench.send(key, large);
    expect(parseStream(await running.readAll()).isDone).toBe(true);
    const late = await waiting;
    expect(late.status).toBe(409);
    expect(await errorOf(late)).toMatchObject({
      code: "answer_not_kept",
      param: "Idempotency-Key",
    });
    const repeated = await bench.send(key, large);
    expect(repeated.status).toBe(409);
    expect(repeated.headers.get("x-should-retry")).toBe("false");
    expect((await errorOf(repeated)).code).toBe("answer_not_kept");
    expect(bench.upstreamCalls()).toBe(before + 1);
  });

  test("embeddings that are too large are not repeated", async () => {
    const key = newKey();
    const input = Array.from({ length: 40 }, (_, place) => `text ${place}`);
    const body = { model: "embedding-model", input };
    const before = bench.upstreamCalls();
    const first = await bench.send(key, body, { path: "/v1/embeddings" });
    expect(first.status).toBe(200);
    expect((await first.text()).length).toBeGreaterThan(64 * 1024);
    const calls = bench.upstreamCalls();
    expect(calls).toBeGreaterThan(before);
    const second = await bench.send(key, body, { path: "/v1/embeddings" });
    expect((await errorOf(second)).code).toBe("answer_not_kept");
    expect(bench.upstreamCalls()).toBe(calls);
  });
});
