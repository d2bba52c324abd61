import { expect, test } from "bun:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import {
  decodeFrame,
  encodeFrame,
  frameOf,
  textHeaders,
  type FrameFixture,
} from "../../../../test/support/bedrock-frames.ts";
import { FrameReader, type Frame } from "./event-stream.ts";

interface Read {
  readonly frames: readonly Frame[];
  readonly failure: string | undefined;
}

function readPieces(pieces: readonly Uint8Array[]): Read {
  const reader = new FrameReader();
  const frames = pieces.flatMap((piece) => reader.push(piece));
  reader.end();
  return { frames, failure: reader.failure?.details.kind };
}

const read = (bytes: Uint8Array): Read => readPieces([bytes]);
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const texts = (frames: readonly Frame[]): readonly string[] =>
  frames.map(({ headers, payload }) => `${headers.eventType} ${textOf(payload)}`);
const bytewise = (bytes: Uint8Array): Uint8Array[] =>
  Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));

/** Ten frames, one without payload and one that is large. */
const fixtures: readonly FrameFixture[] = [
  ["messageStart", { role: "assistant" }],
  ...Array.from({ length: 6 }, (_, at): FrameFixture => [
    "contentBlockDelta",
    { contentBlockIndex: 0, delta: { text: "é".repeat(at * 7) }, p: "abc" },
  ]),
  ["contentBlockDelta", { delta: { text: "x".repeat(3_000) } }],
  ["messageStop", { stopReason: "end_turn" }],
];
const frames = [...fixtures.map(frameOf), encodeFrame(textHeaders({ ":event-type": "empty" }), "")];
const stream = Buffer.concat(frames);
const expected = [
  ...fixtures.map(([event, payload]) => `${event} ${JSON.stringify(payload)}`),
  "empty ",
];

test("frames of the provider's own encoder are read, headers and payloads", () => {
  const { frames: found, failure } = read(stream);
  expect({ texts: texts(found), failure }).toEqual({ texts: [...expected], failure: undefined });
  expect(found[0]?.headers).toEqual({
    messageType: "event",
    eventType: "messageStart",
    exceptionType: undefined,
    errorCode: undefined,
    errorMessage: undefined,
  });
});

test("the frames are the same at every split point", () => {
  const wrongCuts: number[] = [];
  for (let cut = 0; cut <= stream.length; cut += 1) {
    const { frames: found, failure } = readPieces([stream.subarray(0, cut), stream.subarray(cut)]);
    const isRight = failure === undefined && Bun.deepEquals(texts(found), expected);
    if (!isRight) wrongCuts.push(cut);
  }
  expect(wrongCuts).toEqual([]);
});

test("the frames are the same byte by byte, and in any pieces", () => {
  expect(texts(readPieces(bytewise(stream)).frames)).toEqual([...expected]);
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 40 }), (offsets) => {
      const sorted = [0, ...offsets.toSorted((one, other) => one - other), stream.length];
      const pieces = sorted.slice(1).map((end, at) => stream.subarray(sorted[at], end));
      const { frames: found, failure } = readPieces(pieces);
      expect({ failure, texts: texts(found) }).toEqual({
        failure: undefined,
        texts: [...expected],
      });
    }),
    { numRuns: 300 },
  );
});

test("a frame is unchanged by later ones of the same reader", () => {
  const reader = new FrameReader();
  const found = bytewise(stream).flatMap((byte) => reader.push(byte));
  expect(texts(found)).toEqual([...expected]);
});

test("frames are read as the provider's own codec reads them", () => {
  const name = fc.constantFrom(":event-type", ":message-type", ":exception-type", ":other", "x");
  const value = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }).map((text) => ({ type: "string", value: text })),
    fc.boolean().map((flag) => ({ type: "boolean", value: flag })),
    fc.integer({ min: -128, max: 127 }).map((number) => ({ type: "byte", value: number })),
    fc.integer({ min: -300, max: 300 }).map((number) => ({ type: "short", value: number })),
    fc.integer().map((number) => ({ type: "integer", value: number })),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ type: "binary", value: bytes })),
    fc.date({ noInvalidDate: true }).map((date) => ({ type: "timestamp", value: date })),
    fc.uuid().map((uuid) => ({ type: "uuid", value: uuid })),
  );
  const headers = fc.dictionary(name, value, { maxKeys: 5 });
  fc.assert(
    fc.property(headers, fc.string({ maxLength: 300 }), (headerValues, body) => {
      const bytes = encodeFrame(headerValues as Parameters<typeof encodeFrame>[0], body);
      const theirs = decodeFrame(bytes);
      const { frames: found, failure } = read(bytes);
      expect(failure).toBeUndefined();
      expect(found.length).toBe(1);
      expect(textOf(found[0]?.payload ?? new Uint8Array())).toBe(textOf(theirs.body));
      const eventType = theirs.headers[":event-type"];
      const expectedType = eventType?.type === "string" ? eventType.value : undefined;
      expect(found[0]?.headers.eventType).toBe(expectedType);
    }),
    { numRuns: 300 },
  );
});

test("64-bit headers, which the codec writes as its own class, are skipped", () => {
  const headers = Buffer.concat([header(":a", 5, Buffer.alloc(8, 1)), textHeader("messageStop")]);
  expect(texts(read(rawFrame(headers, "{}")).frames)).toEqual(["messageStop {}"]);
});

test("a flipped bit anywhere in a frame is found, and the frame is not returned", () => {
  const [frame] = frames;
  if (frame === undefined) throw new Error("no frame");
  for (let at = 0; at < frame.length; at += 1) {
    for (const mask of [0x01, 0x80]) {
      const damaged = Uint8Array.from(frame);
      damaged[at] = (damaged[at] ?? 0) ^ mask;
      const results = [read(damaged), readPieces(bytewise(damaged))];
      for (const result of results) {
        expect({ at, ...result }).toEqual({ at, frames: [], failure: "broken-answer" });
      }
    }
  }
});

test("a wrong checksum of the prelude is found, even when that of the frame allows for it", () => {
  const frame = rawFrame(textHeader("messageStop"), "{}");
  frame.writeUInt32BE((frame.readUInt32BE(8) ^ 1) >>> 0, 8);
  frame.writeUInt32BE(crc32(frame.subarray(0, -4)), frame.length - 4);
  expect(read(frame)).toEqual({ frames: [], failure: "broken-answer" });
});

test("frames before a damaged one are returned, frames after it are not", () => {
  const damaged = Buffer.from(stream);
  const first = frames[0]?.length ?? 0;
  const second = frames[1]?.length ?? 0;
  damaged[first + second - 1] = (damaged[first + second - 1] ?? 0) ^ 0xff;
  const reader = new FrameReader();
  expect(texts(reader.push(damaged))).toEqual(expected.slice(0, 1));
  expect(reader.failure?.details.kind).toBe("broken-answer");
  expect(reader.push(stream)).toEqual([]);
});

test("a stream cut short at any byte fails at its end, unless it ends between frames", () => {
  const borders = new Set([0]);
  for (const frame of frames) borders.add(Math.max(...borders) + frame.length);
  const wrongEnds: number[] = [];
  for (let end = 0; end <= stream.length; end += 1) {
    const failure = borders.has(end) ? undefined : "broken-answer";
    const cut = stream.subarray(0, end);
    const half = Math.floor(end / 2);
    const results = [read(cut), readPieces([cut.subarray(0, half), cut.subarray(half)])];
    if (results.some((result) => result.failure !== failure)) wrongEnds.push(end);
  }
  expect(wrongEnds).toEqual([]);
});

test("invalid lengths are refused before anything is read or allocated", () => {
  const lengths: readonly (readonly [total: number, headers: number])[] = [
    [0, 0],
    [15, 0],
    [16, 1],
    [40, 25],
    [40, 0xffff_ffff],
    [16 * 1024 * 1024 + 1, 0],
    [0x7fff_ffff, 0],
    [0xffff_ffff, 0],
  ];
  for (const [total, headers] of lengths) {
    const bytes = Buffer.concat([prelude(total, headers), Buffer.alloc(64)]);
    for (const pieces of [[bytes], bytewise(bytes)]) {
      const result = readPieces(pieces);
      expect({ total, headers, ...result }).toEqual({
        total,
        headers,
        frames: [],
        failure: "broken-answer",
      });
    }
  }
});

test("a frame takes memory as its bytes arrive, not by its declared length", () => {
  const claimedBytes = 16 * 1024 * 1024;
  const readers = Array.from({ length: 200 }, () => new FrameReader());
  Bun.gc(true);
  const before = process.memoryUsage().arrayBuffers;
  for (const reader of readers) {
    reader.push(Buffer.concat([prelude(claimedBytes, 0), Buffer.alloc(5_000)]));
    reader.push(Buffer.alloc(5_000));
    expect(reader.failure).toBeUndefined();
  }
  Bun.gc(true);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(claimedBytes);
});

test("a frame of the largest size is read from small pieces, and what follows it", () => {
  const body = "x".repeat(16 * 1024 * 1024 - 16 - textHeader("large").length);
  const large = rawFrame(textHeader("large"), body);
  const bytes = Buffer.concat([large, stream]);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 16_000) pieces.push(bytes.subarray(at, at + 16_000));
  const { frames: found, failure } = readPieces(pieces);
  expect(failure).toBeUndefined();
  expect(found[0]?.payload.length).toBe(body.length);
  expect(texts(found.slice(1))).toEqual([...expected]);
});

test("headers that do not fill their length exactly are refused", () => {
  const good = textHeader("messageStop");
  const bad: readonly Buffer[] = [
    Buffer.concat([good, Buffer.from([9])]),
    Buffer.concat([good, Buffer.from([1, 97])]),
    Buffer.concat([good, header("a", 10, Buffer.alloc(0))]),
    Buffer.concat([good, header("a", 4, Buffer.alloc(3))]),
    Buffer.concat([good, header("a", 9, Buffer.alloc(15))]),
    Buffer.concat([good, header("a", 7, Buffer.from([0]))]),
    Buffer.concat([good, header("a", 6, Buffer.from([0, 5, 1, 2]))]),
  ];
  expect(read(rawFrame(good, "{}")).failure).toBeUndefined();
  for (const headers of bad) {
    expect(read(rawFrame(headers, "{}"))).toEqual({ frames: [], failure: "broken-answer" });
  }
});

test("other bytes fail, and never hang or throw", () => {
  for (const text of [
    "{}",
    '{"message":"no"}',
    "<html><body>Bad gateway</body></html>",
    "data: x",
  ]) {
    expect({ text, failure: read(Buffer.from(text)).failure }).toEqual({
      text,
      failure: "broken-answer",
    });
  }
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (bytes) => {
      expect(read(bytes)).toEqual({ frames: [], failure: "broken-answer" });
    }),
  );
});

function prelude(totalBytes: number, headersBytes: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32BE(totalBytes, 0);
  bytes.writeUInt32BE(headersBytes, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  return bytes;
}

function rawFrame(headers: Buffer, body: string): Buffer {
  const payload = Buffer.from(body);
  const total = 16 + headers.length + payload.length;
  const frame = Buffer.concat([prelude(total, headers.length), headers, payload, Buffer.alloc(4)]);
  frame.writeUInt32BE(crc32(frame.subarray(0, -4)), total - 4);
  return frame;
}

function header(name: string, type: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([type]), value]);
}

function textHeader(eventType: string): Buffer {
  const length = Buffer.from([0, eventType.length]);
  return header(":event-type", 7, Buffer.concat([length, Buffer.from(eventType)]));
}
