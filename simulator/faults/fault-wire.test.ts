import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { type Simulator, startSimulator } from "../simulator.ts";
import type { TruthEntry } from "../call.ts";
import { tlsAlert } from "../front.ts";

let simulator: Simulator;
let ended: (entry: TruthEntry) => void;
beforeAll(() => {
  simulator = startSimulator({ onTruth: (entry) => ended(entry) });
  ended = () => {};
});
afterAll(() => simulator[Symbol.asyncDispose]());

/** Resolves to the truth entry of the next call that ends. */
function nextTruth(): Promise<TruthEntry> {
  return new Promise((resolve) => {
    ended = resolve;
  });
}

interface Exchange {
  readonly received: () => Buffer;
  /** Resolves at the end of the connection, to how it ended. */
  readonly end: Promise<"closed" | "reset">;
  /** Resolves once the answer contains the text. */
  readonly contains: (text: string) => Promise<void>;
  readonly leave: () => void;
}

/** Sends one request over a plain socket and returns every byte of the answer. */
async function exchange(bytes: string | Uint8Array): Promise<Exchange> {
  const parts: Buffer[] = [];
  const received = (): Buffer => Buffer.concat(parts);
  const waiting: { text: string; resolve: () => void }[] = [];
  const { promise: end, resolve: ends } = Promise.withResolvers<"closed" | "reset">();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: simulator.port,
    socket: {
      data(_socket, data) {
        parts.push(Buffer.from(data));
        for (const { text, resolve } of waiting) if (received().includes(text)) resolve();
      },
      close: (_socket, error) => ends(error === undefined ? "closed" : "reset"),
      error: () => {},
    },
  });
  socket.write(bytes);
  return {
    received,
    end,
    contains: (text) =>
      new Promise((resolve) => {
        if (received().includes(text)) resolve();
        else waiting.push({ text, resolve });
      }),
    leave: () => socket.end(),
  };
}

function request(mode: string, options: { stream?: boolean; say?: string } = {}): string {
  const { stream = true, say = "echo: one two three four" } = options;
  const body = JSON.stringify({
    model: "m",
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    messages: [{ role: "user", content: say }],
  });
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nhost: simulator\r\nconnection: close\r\n` +
    `x-simulator-fault: ${mode}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

/** Sends a request, waits for the end of the connection, and parses the answer. */
async function answer(mode: string, options: { stream?: boolean; say?: string } = {}) {
  const truth = nextTruth();
  const { received, end } = await exchange(request(mode, options));
  const ending = await end;
  const text = received().toString("latin1");
  const split = text.indexOf("\r\n\r\n");
  const head = text.slice(0, Math.max(0, split)).toLowerCase();
  const body = split < 0 ? "" : text.slice(split + 4);
  const writes = head.includes("chunked") ? unchunk(body) : [body];
  return { text, head, body, writes, plain: writes.join(""), ending, truth: await truth };
}

/** The complete chunks of a body. */
function unchunk(body: string): string[] {
  const writes: string[] = [];
  let rest = body;
  for (let size = Infinity; size > 0;) {
    const line = /^([0-9a-f]+)\r\n/i.exec(rest);
    size = Number.parseInt(line?.[1] ?? "0", 16);
    const start = line?.[0].length ?? 0;
    if (size === 0 || rest.length < start + size + 2) break;
    writes.push(rest.slice(start, start + size));
    rest = rest.slice(start + size + 2);
  }
  return writes;
}

const isComplete = (body: string): boolean => body.endsWith("\r\n0\r\n\r\n");

describe("without a fault", () => {
  test("a stream is one event a write and ends in [DONE]", async () => {
    const { writes, body, ending, truth } = await answer("ok");
    expect(writes.every((write) => /^data: [^\n]*\n\n$/.test(write))).toBe(true);
    expect(writes).toHaveLength(8);
    expect(writes.at(-1)).toBe("data: [DONE]\n\n");
    expect(isComplete(body)).toBe(true);
    expect(ending).toBe("closed");
    expect(truth).toMatchObject({
      status: 200,
      completionTokens: 4,
      hasUsage: true,
      clientLeft: false,
    });
  });

  test("one connection serves call after call", async () => {
    const keepAlive = request("ok", { stream: false }).replace("connection: close", "accept: */*");
    const { received, contains, leave } = await exchange(
      keepAlive + keepAlive.replace("one two", "six two"),
    );
    await contains("six two three");
    expect(
      received()
        .toString()
        .match(/HTTP\/1\.1 200 OK/g),
    ).toHaveLength(2);
    leave();
  });
});

describe("faults below HTTP", () => {
  test.each([
    ["cut-before-headers", "closed"],
    ["reset-before-headers", "reset"],
  ] as const)("%s sends nothing at all", async (mode, expected) => {
    const { text, ending, truth } = await answer(mode);
    expect({ text, ending }).toEqual({ text: "", ending: expected });
    expect(truth).toMatchObject({ status: 0, completionTokens: 0, fault: mode });
  });

  test("cut-after-headers sends only the head", async () => {
    const { head, body, ending } = await answer("cut-after-headers");
    expect(head).toStartWith("http/1.1 200 ok");
    expect({ body, ending }).toEqual({ body: "", ending: "closed" });
  });

  test("cut-mid-chunk closes inside a chunk, after some whole ones", async () => {
    const { body, writes, ending, truth } = await answer("cut-mid-chunk");
    expect(writes).toHaveLength(3);
    const broken = /\r\n([0-9a-f]+)\r\n(data: \{"id":"chatcmpl[^\n]*)$/.exec(body);
    expect(broken?.[2]?.length).toBeLessThan(Number.parseInt(broken?.[1] ?? "0", 16));
    expect(ending).toBe("closed");
    expect(truth).toMatchObject({ status: 200, completionTokens: 2 });
  });

  test("reset resets after some whole chunks", async () => {
    const { writes, ending, body } = await answer("reset");
    expect({ count: writes.length, ending }).toEqual({ count: 3, ending: "reset" });
    expect(isComplete(body)).toBe(false);
  });

  test("tls-fail answers with an alert, as every TLS handshake is answered", async () => {
    const { text } = await answer("tls-fail");
    expect(Buffer.from(text, "latin1")).toEqual(Buffer.from(tlsAlert));
    const hello = await exchange(new Uint8Array([0x16, 0x03, 0x01, 0x00, 0x01, 0x01]));
    expect(await hello.end).toBe("closed");
    expect(hello.received()).toEqual(Buffer.from(tlsAlert));
  });

  test("are refused at the address without a front", async () => {
    const response = await fetch(`${simulator.directUrl}/chat/completions`, {
      method: "POST",
      headers: { "x-simulator-fault": "reset" },
      body: '{"model":"m","messages":[{"role":"user","content":"x"}]}',
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "fault_needs_front" } });
  });
});

describe("faults of timing and encoding", () => {
  test("slow-first-byte sends nothing at first, then the whole answer", async () => {
    expect((await answer("slow-first-byte:5")).plain).toEndWith("data: [DONE]\n\n");
    const truth = nextTruth();
    const { received, leave, end } = await exchange(request("slow-first-byte:600000"));
    while (simulator.openCalls === 0) await new Promise((resolve) => setImmediate(resolve));
    leave();
    await end;
    expect(received().length).toBe(0);
    expect(await truth).toMatchObject({ status: 0, completionTokens: 0, clientLeft: true });
  });

  test("stall-mid is silent until the caller leaves", async () => {
    const truth = nextTruth();
    const { contains, received, leave } = await exchange(request("stall-mid"));
    await contains('" two"');
    expect(simulator.openCalls).toBe(1);
    leave();
    expect(await truth).toMatchObject({ clientLeft: true, completionTokens: 2, hasUsage: false });
    expect(received().includes('" three"')).toBe(false);
    expect(simulator.openCalls).toBe(0);
  });

  test("stall-mid with an argument goes on after the pause, streamed or not", async () => {
    expect((await answer("stall-mid:10")).plain).toEndWith("data: [DONE]\n\n");
    const { plain, writes } = await answer("stall-mid:10", { stream: false });
    expect(writes).toHaveLength(2);
    expect(JSON.parse(plain)).toMatchObject({ object: "chat.completion" });
  });

  test("dribble sends one byte a write", async () => {
    const { writes, plain } = await answer("dribble", { stream: false });
    expect(writes.every((write) => write.length === 1)).toBe(true);
    expect(JSON.parse(plain)).toMatchObject({
      choices: [{ message: { content: "one two three four" } }],
    });
  });

  test("never-closes holds the connection after [DONE]", async () => {
    const truth = nextTruth();
    const { contains, received, leave } = await exchange(request("never-closes"));
    await contains("[DONE]");
    expect(simulator.openCalls).toBe(1);
    leave();
    expect(await truth).toMatchObject({ clientLeft: true, completionTokens: 4 });
    expect(isComplete(received().toString())).toBe(false);
  });

  test("gzip-bomb is small on the wire and large unpacked, with the answer at the end", async () => {
    const { head, plain } = await answer("gzip-bomb:8", { stream: false });
    expect(head).toContain("content-encoding: gzip");
    expect(plain.length).toBeLessThan(100_000);
    const unpacked = gunzipSync(Buffer.from(plain, "latin1"));
    expect(unpacked.length).toBeGreaterThan(8 * 1024 * 1024);
    expect(JSON.parse(unpacked.toString())).toMatchObject({ object: "chat.completion" });
  });

  test("chained-encodings packs the answer several times over", async () => {
    const { head, plain } = await answer("chained-encodings:3", { stream: false });
    expect(head).toContain("content-encoding: gzip, gzip, gzip");
    let bytes: Buffer = Buffer.from(plain, "latin1");
    for (let layer = 0; layer < 3; layer++) bytes = gunzipSync(bytes);
    expect(JSON.parse(bytes.toString())).toMatchObject({ object: "chat.completion" });
  });
});

describe("faults of the stream's events", () => {
  const usageEvents = (plain: string): number => plain.match(/"usage":\{/g)?.length ?? 0;

  test("ok-no-usage and usage-twice change the number of usage chunks", async () => {
    expect(usageEvents((await answer("ok")).plain)).toBe(1);
    expect(usageEvents((await answer("ok-no-usage")).plain)).toBe(0);
    expect(usageEvents((await answer("usage-twice")).plain)).toBe(2);
    const plain = await answer("ok-no-usage", { stream: false });
    expect(JSON.parse(plain.plain)).not.toHaveProperty("usage");
    expect(plain.truth.hasUsage).toBe(false);
  });

  test("wrong-usage changes the answer, not the truth log", async () => {
    const { plain, truth } = await answer("wrong-usage", { stream: false });
    expect(JSON.parse(plain)).toMatchObject({ usage: { completion_tokens: 50 } });
    expect(truth.completionTokens).toBe(4);
  });

  test("bad-json breaks one event of a stream, or an unstreamed answer", async () => {
    const { writes } = await answer("bad-json");
    expect(() => JSON.parse(writes[2]?.slice(6) ?? "{}") as unknown).toThrow(SyntaxError);
    expect(writes[2]).toEndWith("\n\n");
    const { plain } = await answer("bad-json", { stream: false });
    expect(() => JSON.parse(plain) as unknown).toThrow(SyntaxError);
  });

  test("error-event-mid-stream ends the stream in an error, without [DONE]", async () => {
    const { writes, body, plain } = await answer("error-event-mid-stream");
    expect(writes.at(-1)).toStartWith('data: {"error":{"message":');
    expect(plain).not.toContain("[DONE]");
    expect(isComplete(body)).toBe(true);
  });

  test("missing-finish-reason, no-done and role-every-chunk omit or repeat what they name", async () => {
    const unfinished = (await answer("missing-finish-reason")).plain;
    expect(unfinished).not.toContain('"finish_reason":"stop"');
    expect(unfinished).toContain("[DONE]");
    const open = await answer("no-done");
    expect(open.plain).toContain('"finish_reason":"stop"');
    expect(open.plain).not.toContain("[DONE]");
    const roles = await answer("role-every-chunk");
    expect(roles.plain.match(/"role":"assistant"/g)).toHaveLength(6);
  });

  test("crlf-framing and comments are legal event streams", async () => {
    const { writes } = await answer("crlf-framing");
    expect(writes.every((write) => /^data: [^\r\n]*\r\n\r\n$/.test(write))).toBe(true);
    const commented = await answer("comments");
    expect(commented.writes.filter((write) => write.startsWith(":"))).toHaveLength(8);
  });

  test("giant-chunk is a single delta of a mebibyte", async () => {
    const { writes } = await answer("giant-chunk");
    expect(writes.filter((write) => write.length > 1024 * 1024)).toHaveLength(1);
    expect(writes).toHaveLength(5);
  });

  test("million-chunks sends as many deltas as its argument", async () => {
    const { plain, truth } = await answer("million-chunks:20000");
    expect(plain.match(/"delta":\{"content":/g)).toHaveLength(20_000);
    expect(truth.completionTokens).toBe(20_000);
  });
});

describe("faults that refuse a call", () => {
  test.each([
    ["throttle-429", 429, "rate_limit_exceeded"],
    ["throttle-429-bare", 429, "rate_limit_exceeded"],
    ["error-500", 500, null],
    ["overloaded-503", 503, null],
    ["context-overflow", 400, "context_length_exceeded"],
    ["bad-credential", 401, "invalid_api_key"],
    ["model-not-found-404", 404, "model_not_found"],
    ["bad-request-400", 400, "decimal_above_max_value"],
    ["error-200", 200, null],
  ])("%s answers %i in OpenAI's shape", async (mode, status, code) => {
    const { head, plain, truth } = await answer(mode);
    expect(head).toStartWith(`http/1.1 ${status} `);
    expect(head.includes("retry-after: 2")).toBe(mode === "throttle-429");
    expect(JSON.parse(plain)).toMatchObject({
      error: { message: expect.any(String), type: expect.any(String), code },
    });
    expect(truth).toMatchObject({ status, completionTokens: 0, hasUsage: false });
  });

  test.each([
    ["html-502", 502],
    ["non-sse-200", 200],
  ])("%s answers %i with a page", async (mode, status) => {
    const { head, plain } = await answer(mode);
    expect(head).toStartWith(`http/1.1 ${status} `);
    expect(head).toContain("content-type: text/html");
    expect(plain).toStartWith("<html>");
  });

  test("redirect points to another path", async () => {
    const { head } = await answer("redirect");
    expect(head).toStartWith("http/1.1 307 ");
    expect(head).toContain("location: /redirected");
  });

  test("flap alternates between an answer and a refusal", async () => {
    const statuses = [];
    for (let turn = 0; turn < 4; turn++) statuses.push((await answer("flap")).truth.status);
    expect(statuses).toEqual([200, 503, 200, 503]);
  });

  test("a fault that does not exist is a bad request", async () => {
    const { head, plain } = await answer("unheard-of");
    expect(head).toStartWith("http/1.1 400 ");
    expect(plain).toContain("unknown_fault");
  });
});
