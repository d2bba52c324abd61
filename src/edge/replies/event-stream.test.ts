import { afterEach, expect, test } from "bun:test";
import type { Socket } from "bun";
import { systemClock } from "../../domain/clock.ts";
import { WaitingReader } from "../../domain/waiting/flow.ts";
import {
  eventStream,
  eventStreamHeaders,
  keepAliveComment,
  type EventStreamOptions,
  type FrameSource,
  type StreamEnd,
} from "./event-stream.ts";

/** Frames that the test gives. */
class GivenFrames implements FrameSource {
  readonly #reader = new WaitingReader();
  readonly #frames: string[] = [];
  #hasEnded = false;
  taken = 0;
  cancels = 0;

  give(...frames: readonly string[]): void {
    this.#frames.push(...frames);
    this.#reader.wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#reader.wake();
  }

  take(): string | undefined {
    const frames = this.#frames.shift();
    if (frames !== undefined) this.taken += 1;
    return frames;
  }

  get isOver(): boolean {
    return this.#hasEnded && this.#frames.length === 0;
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
  }

  cancel(): void {
    this.cancels += 1;
  }
}

/** A server of one stream, and a caller over a socket. */
class StreamBench implements AsyncDisposable {
  readonly source = new GivenFrames();
  readonly ends: StreamEnd[] = [];
  text = "";
  isClosed = false;
  socket: Socket | undefined;
  readonly #server;

  constructor(options: Partial<EventStreamOptions> = {}) {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch: () => {
        const body = eventStream(this.source, {
          clock: systemClock,
          keepAliveMs: 0,
          keepAlive: () => keepAliveComment,
          beginsWithKeepAlive: false,
          writeTimeoutMs: 60_000,
          onEnd: (end) => {
            this.ends.push(end);
            return true;
          },
          ...options,
        });
        return new Response(body, { headers: eventStreamHeaders });
      },
    });
  }

  async open({ isPaused = false } = {}): Promise<void> {
    this.socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: this.#server.port ?? 0,
      socket: {
        data: (_, bytes) => void (this.text += bytes.toString("latin1")),
        close: () => void (this.isClosed = true),
      },
    });
    if (isPaused) this.socket.pause();
    this.socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }

  /** What came after the head of the answer. */
  get body(): string {
    return this.text.split("\r\n\r\n").slice(1).join("\r\n\r\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

const benches: StreamBench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench[Symbol.asyncDispose]();
});

function benchOf(options: Partial<EventStreamOptions> = {}): StreamBench {
  const bench = new StreamBench(options);
  benches.push(bench);
  return bench;
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await Bun.sleep(1);
}

test("what is there at once is one piece of the body, and so is what comes at once later", async () => {
  const bench = benchOf();
  bench.source.give("data: 1\n\n", "data: 2\n\n");
  await bench.open();
  await until(() => bench.body !== "");
  expect(bench.body).toBe("12\r\ndata: 1\n\ndata: 2\n\n\r\n");
  bench.source.give("data: 3\n\n", "data: \u00e9\n\n");
  bench.source.end();
  await until(() => bench.text.endsWith("0\r\n\r\n"));
  expect(bench.body).toContain(Buffer.from("data: 3\n\ndata: \u00e9\n\n").toString("latin1"));
  expect(bench.ends).toEqual(["whole"]);
});

test("nothing is taken while the reader has to read", async () => {
  const bench = benchOf();
  const frames = Array.from({ length: 1_000 }, () => `data: ${"x".repeat(64 * 1024)}\n\n`);
  bench.source.give(...frames);
  await bench.open({ isPaused: true });
  await until(() => bench.source.taken > 0);
  expect(bench.source.taken).toBeLessThan(frames.length / 2);
  bench.socket?.resume();
  bench.source.end();
  await until(() => bench.ends.length > 0);
  expect([bench.source.taken, bench.ends]).toEqual([frames.length, ["whole"]]);
});

test("a reader that is cut off gets no end of the body", async () => {
  const bench = benchOf({ writeTimeoutMs: 50 });
  bench.source.give(...Array.from({ length: 1_000 }, () => `data: ${"x".repeat(64 * 1024)}\n\n`));
  await bench.open({ isPaused: true });
  await until(() => bench.ends.length > 0);
  expect([bench.ends, bench.source.cancels]).toEqual([["cut"], 1]);
  const { taken } = bench.source;
  bench.socket?.resume();
  await until(() => bench.text.length >= taken * 64 * 1024);
  await bench[Symbol.asyncDispose]();
  await until(() => bench.isClosed);
  expect(bench.text).not.toEndWith("0\r\n\r\n");
  expect([bench.source.taken, bench.ends]).toEqual([taken, ["cut"]]);
});

test("a caller that leaves ends the source, which is not told of an end", async () => {
  const bench = benchOf();
  bench.source.give("data: 1\n\n");
  await bench.open();
  await until(() => bench.body !== "");
  bench.socket?.terminate();
  await until(() => bench.source.cancels > 0);
  bench.source.give("data: 2\n\n");
  expect([bench.source.taken, bench.ends]).toEqual([1, []]);
});

test("keep-alives fill the silence of the source, the first before anything comes if wanted", async () => {
  const bench = benchOf({ keepAliveMs: 5, beginsWithKeepAlive: true });
  await bench.open();
  const piece = `e\r\n${keepAliveComment}\r\n`;
  await until(() => bench.body.startsWith(piece + piece + piece));
  bench.source.give("data: 1\n\n");
  bench.source.end();
  await until(() => bench.text.endsWith("0\r\n\r\n"));
  expect(bench.body).toContain("data: 1\n\n");
});
