import { EventStreamCodec } from "@smithy/eventstream-codec";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { parseJson, recordOf } from "../read-json.ts";
import { startSimulator, type Simulator } from "../simulator.ts";
import type { TruthEntry } from "../truth-log.ts";
import { demoApiKey } from "./account/credential-book.ts";

let simulator: Simulator;
let ended: (entry: TruthEntry) => void = () => {};
const onTruth = (entry: TruthEntry): void => ended(entry);
beforeAll(() => {
  simulator = startSimulator({ onTruth });
});
afterAll(() => simulator[Symbol.asyncDispose]());

/** Resolves to the truth about the next call that ends. */
function nextTruth(): Promise<TruthEntry> {
  return new Promise((resolve) => {
    ended = resolve;
  });
}

interface Asking {
  readonly fault?: string;
  readonly model?: string;
  readonly operation?: "converse" | "converse-stream";
  readonly signal?: AbortSignal;
  readonly maxTokens?: number;
  readonly of?: Simulator;
}

function ask({ operation = "converse-stream", model = "simulated-model", ...more }: Asking) {
  const { fault, signal = null, maxTokens = 100, of = simulator } = more;
  return fetch(`${new URL(of.url).origin}/model/${encodeURIComponent(model)}/${operation}`, {
    method: "POST",
    signal,
    redirect: "manual",
    headers: {
      authorization: `Bearer ${demoApiKey}`,
      ...(fault === undefined ? {} : { "x-simulator-fault": fault }),
    },
    body: JSON.stringify({
      messages: [{ role: "user", content: [{ text: "count: 4" }] }],
      inferenceConfig: { maxTokens },
    }),
  });
}

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString("utf8"),
  (text) => Buffer.from(text, "utf8"),
);

/** The types of the frames, and what is left when the last one breaks off. */
function read(stream: Buffer): { readonly types: string[]; readonly rest: number } {
  const types: string[] = [];
  let rest = stream;
  while (rest.length >= 4 && rest.length >= rest.readUInt32BE(0)) {
    const { headers } = codec.decode(rest.subarray(0, rest.readUInt32BE(0)));
    types.push(String((headers[":event-type"] ?? headers[":exception-type"])?.value));
    rest = rest.subarray(rest.readUInt32BE(0));
  }
  return { types, rest: rest.length };
}

/** What comes until the answer ends or the connection breaks. */
async function receive(response: Response): Promise<{ bytes: Buffer; isBroken: boolean }> {
  const parts: Uint8Array[] = [];
  let isBroken = false;
  try {
    const body: ReadableStream<Uint8Array> | null = response.body;
    for await (const part of body ?? []) parts.push(part);
  } catch {
    isBroken = true;
  }
  return { bytes: Buffer.concat(parts), isBroken };
}

/** The same over a bare socket: what each write carried, and what no write completes. */
async function exchange(fault: string): Promise<{ writes: readonly Buffer[]; rest: string }> {
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  const parts: Buffer[] = [];
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: simulator.port,
    socket: {
      data: (_socket, data) => {
        parts.push(Buffer.from(data));
      },
      close: () => close(),
    },
  });
  const body = JSON.stringify({ messages: [{ role: "user", content: [{ text: "count: 4" }] }] });
  socket.write(
    "POST /model/simulated-model/converse-stream HTTP/1.1\r\nhost: simulator\r\n" +
      `connection: close\r\nauthorization: Bearer ${demoApiKey}\r\n` +
      `x-simulator-fault: ${fault}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await closed;
  const text = Buffer.concat(parts).toString("latin1");
  return unchunk(text.slice(text.indexOf("\r\n\r\n") + 4));
}

function unchunk(text: string): { writes: readonly Buffer[]; rest: string } {
  const writes: Buffer[] = [];
  let rest = text;
  for (;;) {
    const [line = "", size = "0"] = /^([0-9a-f]+)\r\n/.exec(rest) ?? [];
    const end = line.length + Number.parseInt(size, 16);
    if (end === line.length || rest.length < end + 2) return { writes, rest };
    writes.push(Buffer.from(rest.slice(line.length, end), "latin1"));
    rest = rest.slice(end + 2);
  }
}

const wholeAnswer = [
  "messageStart",
  ...Array.from({ length: 4 }, () => "contentBlockDelta"),
  "contentBlockStop",
  "messageStop",
  "metadata",
];
const known = (types: readonly string[]): string[] =>
  types.filter((type) => type !== "contentBlockNote");

describe("connections that break", () => {
  test("before an answer, or a reset", async () => {
    for (const fault of ["cut-before-headers", "reset-before-headers", "tls-fail"]) {
      const truth = nextTruth();
      expect(await ask({ fault }).catch(() => "refused")).toBe("refused");
      expect(await truth).toMatchObject({ status: 0, completionTokens: 0, fault });
    }
  });

  test("cut-after-headers leaves the head alone", async () => {
    const response = await ask({ fault: "cut-after-headers" });
    expect(response.headers.get("content-type")).toBe("application/vnd.amazon.eventstream");
    const { bytes, isBroken } = await receive(response);
    expect({ length: bytes.length, isBroken }).toEqual({ length: 0, isBroken: true });
  });

  test("cut-mid-chunk breaks off inside the fourth frame", async () => {
    const truth = nextTruth();
    const { writes, rest } = await exchange("cut-mid-chunk");
    expect(read(Buffer.concat(writes))).toEqual({ types: wholeAnswer.slice(0, 3), rest: 0 });
    const [, size = "", begun = ""] = /^([0-9a-f]+)\r\n([^]+)$/.exec(rest) ?? [];
    const promised = Number.parseInt(size, 16);
    expect(Buffer.from(begun, "latin1").readUInt32BE(0)).toBe(promised);
    expect(begun).toHaveLength(Math.ceil(promised / 2));
    expect(await truth).toMatchObject({ status: 200, completionTokens: 2, hasUsage: false });
  });

  test("reset comes after the third frame", async () => {
    const truth = nextTruth();
    const { bytes, isBroken } = await receive(await ask({ fault: "reset" }));
    expect(read(bytes)).toEqual({ types: wholeAnswer.slice(0, 3), rest: 0 });
    expect(isBroken).toBe(true);
    expect(await truth).toMatchObject({ completionTokens: 2, clientLeft: false });
  });
});

test("random-splits cut frames anywhere and join others", async () => {
  const { writes, rest } = await exchange("random-splits:5");
  const { types, rest: unread } = read(Buffer.concat(writes));
  expect({ types: known(types), unread }).toEqual({ types: wholeAnswer, unread: 0 });
  expect(rest).toBe("0\r\n\r\n");
  expect(writes.some((write) => write.length === 1)).toBe(true);
  expect((await exchange("random-splits:6")).writes).not.toEqual(writes);
});

describe("streams that end cleanly and too early", () => {
  test.each([
    ["truncated-frame", wholeAnswer.slice(0, 3), false],
    ["cut-in-length-prefix", wholeAnswer.slice(0, 3), false],
    ["no-message-stop", wholeAnswer.slice(0, 6), true],
    ["no-metadata", wholeAnswer.slice(0, 7), true],
    ["mid-stream-throttling", [...wholeAnswer.slice(0, 3), "throttlingException"], true],
    ["first-frame-validation", ["validationException"], true],
  ])("%s", async (fault, expected, isWhole) => {
    const response = await ask({ fault });
    expect(response.status).toBe(200);
    const { bytes, isBroken } = await receive(response);
    const { types, rest } = read(bytes);
    expect(known(types)).toEqual(expected);
    expect(rest === 0).toBe(isWhole);
    expect(isBroken).toBe(false);
  });
});

describe("streams that fall silent", () => {
  test.each([
    ["stall-mid", 2, 3],
    ["oversized-length", 2, 3],
    ["never-closes", 4, 8],
  ])("%s lasts until the caller leaves", async (fault, completionTokens, frames) => {
    const truth = nextTruth();
    const leave = new AbortController();
    const response = await ask({ fault, signal: leave.signal });
    const reader = response.body?.getReader();
    let bytes = Buffer.alloc(0);
    while (known(read(bytes).types).length < frames) {
      bytes = Buffer.concat([bytes, (await reader?.read())?.value ?? Buffer.alloc(0)]);
    }
    expect(simulator.openCalls).toBe(1);
    leave.abort();
    expect(await truth).toMatchObject({ status: 200, clientLeft: true, completionTokens });
    expect(simulator.openCalls).toBe(0);
  });
});

describe("encodings", () => {
  test("gzip-bomb is unknown events by the mebibyte before the answer", async () => {
    const { bytes } = await receive(await ask({ fault: "gzip-bomb:3" }));
    expect(bytes.length).toBeGreaterThan(3 * 1024 * 1024);
    const { types, rest } = read(bytes);
    expect(types.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => "contentBlockNote"));
    expect(known(types)).toEqual(wholeAnswer);
    expect(rest).toBe(0);
  });

  test("gzip-bomb of a whole answer is white space before its JSON", async () => {
    const response = await ask({ fault: "gzip-bomb:3", operation: "converse" });
    const text = await response.text();
    expect(text.length).toBeGreaterThan(3 * 1024 * 1024);
    expect(recordOf(parseJson(text))["stopReason"]).toBe("end_turn");
  });
});

test("whole answers break in the middle, too", async () => {
  const cut = await receive(await ask({ fault: "cut-mid-chunk", operation: "converse" }));
  expect(cut.isBroken).toBe(true);
  expect(() => parseJson(cut.bytes.toString())).toThrow(SyntaxError);
  const slow = await ask({ fault: "stall-mid:5", operation: "converse" });
  expect(await slow.json()).toMatchObject({ stopReason: "end_turn" });
});

test("a fault in a model's name counts like one in the header", async () => {
  const response = await ask({ model: "simulated-fault-exception-model-error" });
  expect(response.status).toBe(424);
  expect(response.headers.get("x-amzn-errortype")).toStartWith("ModelErrorException:");
  const other = await ask({ model: "simulated-fault-crlf-framing" });
  expect(other.status).toBe(400);
});

describe("quotas", () => {
  test("throttle beyond a minute's requests, and refill", async () => {
    let nowMs = 0;
    const clock = {
      now: () => Date.now(),
      monotonic: () => nowMs,
      schedule: () => () => undefined,
    };
    const bedrock = { quotas: { requestsPerMinute: 1 } };
    await using limited = startSimulator({ bedrock, clock, onTruth });
    expect((await receive(await ask({ of: limited }))).isBroken).toBe(false);
    const refused = await ask({ of: limited });
    expect(refused.status).toBe(429);
    expect(await refused.json()).toEqual({
      message: "Too many requests, please wait before trying again.",
    });
    nowMs += 60_000;
    expect((await ask({ of: limited })).status).toBe(200);
  });
});
