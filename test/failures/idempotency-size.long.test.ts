import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { errorOf, parseStream } from "../support/bodies.ts";
import { upstreamKinds } from "../support/gateway.ts";
import {
  startIdempotentGateway,
  StreamedAnswer,
  streamedChat,
  until,
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

  test("an answer that is too large arrives complete, cannot be joined, and is not repeated", async () => {
    const key = newKey();
    const before = bench.upstreamCalls();
    const running = new StreamedAnswer(await bench.send(key, large));
    while (running.text.length < 128 * 1024) await running.readFrames(framesIn(running) + 1);
    const late = await bench.send(key, large);
    expect(late.status).toBe(409);
    expect(await errorOf(late)).toMatchObject({
      code: "answer_not_kept",
      param: "Idempotency-Key",
    });
    expect(parseStream(await running.readAll()).isDone).toBe(true);
    const repeated = await bench.send(key, large);
    expect(repeated.status).toBe(409);
    expect(repeated.headers.get("x-should-retry")).toBe("false");
    expect((await errorOf(repeated)).code).toBe("answer_not_kept");
    expect(bench.upstreamCalls()).toBe(before + 1);
  });

  test("a reader that stalls does not delay the others, and memory is bounded", async () => {
    const key = newKey();
    const before = bench.upstreamCalls();
    const stalled = openStalled(bench, key, large);
    await until("the upstream is busy", () => bench.gateway.simulator.openCalls === 1);
    const joined = await bench.send(key, large);
    expect(joined.headers.get("idempotent-replayed")).toBe("true");
    expect(parseStream(await joined.text()).isDone).toBe(true);
    expect(bench.upstreamCalls()).toBe(before + 1);
    // It gets what the connection had buffered, then an error with the reason.
    const text = await readRest(stalled);
    expect(text).toContain("answer_not_kept");
    expect(text).not.toContain("[DONE]");
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

function framesIn({ text }: StreamedAnswer): number {
  return text.split("\n\n").length - 1;
}

/** A caller over a socket that reads nothing until `read` is called. */
function openStalled({ gateway }: IdempotentGateway, key: string, body: unknown): Socket {
  const text = JSON.stringify(body);
  const socket = connect(gateway.port, "127.0.0.1").pause();
  socket.on("error", () => undefined);
  socket.write(
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
      `Authorization: Bearer ${gateway.key}\r\nIdempotency-Key: ${key}\r\n` +
      "Content-Type: application/json\r\n" +
      `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
  return socket;
}

async function readRest(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8");
  socket.resume();
  for await (const piece of socket) text += String(piece);
  return text;
}
