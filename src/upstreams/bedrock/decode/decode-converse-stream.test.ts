import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  contextOf,
  encodeFrame,
  frameOf,
  streamOf,
  textHeaders,
  type ContextFixture,
  type FrameFixture,
} from "../../../../test/support/bedrock-frames.ts";
import type { ChatEvent } from "../../../domain/chat/answer.ts";
import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";
import { converseDecoder, decoderLimits } from "../../../../test/support/answer-decoding.ts";
import goldenStreams from "../golden-answers/streams.json";

interface GoldenStream {
  readonly name: string;
  readonly context?: ContextFixture;
  readonly frames: readonly FrameFixture[];
  readonly events: readonly ChatEvent[];
  /** `done`, or the kind of the failure. */
  readonly ending: string;
}

interface Decoded {
  readonly events: readonly ChatEvent[];
  readonly ending: string;
  readonly failure: UpstreamFailureDetails | undefined;
}

/** Decodes as a call does: until the answer is complete, has failed, or ends. */
function decode(
  pieces: readonly Uint8Array[],
  context?: ContextFixture,
  malformedEvents = 0,
): Decoded {
  const reader = { context: contextOf(context), onUnknownFinish: () => undefined };
  const decoder = converseDecoder(reader, { ...decoderLimits, malformedEvents });
  const isOver = (): boolean => decoder.isDone || decoder.failure !== undefined;
  const events: ChatEvent[] = [];
  for (const piece of pieces) if (!isOver()) events.push(...decoder.push(piece));
  if (!isOver()) events.push(...decoder.end());
  const failure = decoder.failure?.details;
  return { events, ending: failure?.kind ?? (decoder.isDone ? "done" : "open"), failure };
}

const bytewise = (bytes: Uint8Array): Uint8Array[] =>
  Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));

/** Undefined fields count as absent: JSON cannot have them. */
function expectDecoded(decoded: Decoded, { events, ending }: Omit<GoldenStream, "frames">): void {
  expect(decoded.events).toEqual([...events]);
  expect(decoded.ending).toBe(ending);
}

for (const golden of goldenStreams as unknown as readonly GoldenStream[]) {
  test(`golden stream: ${golden.name}`, () => {
    const bytes = streamOf(golden.frames);
    expectDecoded(decode([bytes], golden.context), golden);
    expectDecoded(decode(bytewise(bytes), golden.context), golden);
    expectDecoded(decode(golden.frames.map(frameOf), golden.context), golden);
  });
}

const text = (value: string): FrameFixture => [
  "contentBlockDelta",
  { contentBlockIndex: 0, delta: { text: value }, p: "abcd" },
];
const stop: FrameFixture = ["messageStop", { stopReason: "tool_use" }];
const metadata: FrameFixture = [
  "metadata",
  { usage: { inputTokens: 3, outputTokens: 5, totalTokens: 8 }, metrics: { latencyMs: 7 } },
];
test("a stream without a stop reason is incomplete", () => {
  for (const payload of [{}, { stopReason: "" }, { stopReason: null }]) {
    const bytes = streamOf([text("a"), ["messageStop", payload], metadata]);
    const { events, ending } = decode([bytes]);
    expect(ending).toBe("broken-answer");
    expect(events[0]).toEqual({ type: "text-delta", choice: 0, text: "a" });
    expect(events.map(({ type }) => type)).not.toContain("choice-finish");
  }
});

const tenFrames: readonly FrameFixture[] = [
  ["messageStart", { role: "assistant", p: "abc" }],
  text("Grüße, "),
  text("世界 👋🏽"),
  ["contentBlockStop", { contentBlockIndex: 0 }],
  [
    "contentBlockStart",
    { contentBlockIndex: 1, start: { toolUse: { toolUseId: "t", name: "f" } } },
  ],
  ["contentBlockDelta", { contentBlockIndex: 1, delta: { toolUse: { input: '{"x":' } } }],
  ["contentBlockDelta", { contentBlockIndex: 1, delta: { toolUse: { input: '"é"}' } } }],
  ["contentBlockStop", { contentBlockIndex: 1 }],
  stop,
  metadata,
];
const tenEvents: readonly ChatEvent[] = [
  { type: "text-delta", choice: 0, text: "Grüße, " },
  { type: "text-delta", choice: 0, text: "世界 👋🏽" },
  { type: "tool-call-start", choice: 0, call: 0, id: "t", kind: "function", name: "f" },
  { type: "tool-call-delta", choice: 0, call: 0, arguments: '{"x":' },
  { type: "tool-call-delta", choice: 0, call: 0, arguments: '"é"}' },
  { type: "choice-finish", choice: 0, finishReason: "tool_calls" },
  {
    type: "usage-report",
    usage: { inputTokens: 3, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 },
  },
];
const tenBytes = streamOf(tenFrames);

test("the events of ten frames are the same at every split point", () => {
  const wrongCuts: number[] = [];
  for (let cut = 0; cut <= tenBytes.length; cut += 1) {
    const { events, ending } = decode([tenBytes.subarray(0, cut), tenBytes.subarray(cut)]);
    if (ending !== "done" || !Bun.deepEquals(events, tenEvents)) wrongCuts.push(cut);
  }
  expect(wrongCuts).toEqual([]);
});

test("the events of ten frames are the same for any split", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(tenBytes.length), { maxLength: 40 }), (offsets) => {
      const sorted = [0, ...offsets.toSorted((one, other) => one - other), tenBytes.length];
      const pieces = sorted.slice(1).map((end, at) => tenBytes.subarray(sorted[at], end));
      expectDecoded(decode(pieces), { name: "", events: tenEvents, ending: "done" });
    }),
    { numRuns: 300 },
  );
});

test("a stream cut short at any byte before the end of its stop is broken, and has no finish", () => {
  const needed = streamOf(tenFrames.slice(0, -1)).length;
  const wrongEnds: number[] = [];
  for (let end = 0; end < tenBytes.length; end += 1) {
    const { events, ending } = decode([tenBytes.subarray(0, end)]);
    const hasFinish = events.some(({ type }) => type === "choice-finish");
    const isWhole = ending === "done" && hasFinish;
    const isBroken = ending === "broken-answer" && !hasFinish;
    if (end === needed ? !isWhole : !isBroken) wrongEnds.push(end);
  }
  expect(wrongEnds).toEqual([]);
});

test("a bit flipped at any byte breaks the stream, and no event of its frame or after it is emitted", () => {
  let start = 0;
  for (const [position, fixture] of tenFrames.entries()) {
    const frame = frameOf(fixture);
    const before = decode([streamOf(tenFrames.slice(0, position))]).events.filter(
      ({ type }) => type !== "choice-finish",
    );
    const wrongOffsets: number[] = [];
    for (let at = start; at < start + frame.length; at += 1) {
      const damaged = Uint8Array.from(tenBytes);
      damaged[at] = (damaged[at] ?? 0) ^ 0x10;
      const { events, ending } = decode([damaged]);
      const isRight = ending === "broken-answer" && Bun.deepEquals(events, before);
      if (!isRight) wrongOffsets.push(at);
    }
    expect({ position, wrongOffsets }).toEqual({ position, wrongOffsets: [] });
    start += frame.length;
  }
});

/** The exceptions that the service model lists for its streams. */
const streamExceptions: readonly (readonly [name: string, kind: string, body: object])[] = [
  ["internalServerException", "unavailable", { message: "The server had a problem." }],
  ["modelStreamErrorException", "unavailable", { message: "Bad.", originalStatusCode: 500 }],
  ["modelStreamErrorException", "throttled", { message: "Slow.", originalStatusCode: 429 }],
  ["validationException", "invalid-request", { message: "Malformed input request." }],
  [
    "validationException",
    "context-overflow",
    { message: "The model returned the following errors: Input is too long for requested model." },
  ],
  ["throttlingException", "throttled", { message: "Too many tokens, please wait before trying." }],
  ["serviceUnavailableException", "overloaded", { message: "Bedrock is unable to process it." }],
  ["modelTimeoutException", "timed-out", { message: "The model took too long." }],
  ["somethingNewException", "unavailable", { message: "New." }],
];

for (const [name, kind, body] of streamExceptions) {
  test(`${name} is ${kind}: first, among events, after the stop, and in one piece with them`, () => {
    const exception: FrameFixture = ["exception", name, body];
    const start: FrameFixture = ["messageStart", { role: "assistant" }];
    const told: ChatEvent = { type: "text-delta", choice: 0, text: "a" };
    const beginnings: readonly (readonly [readonly FrameFixture[], readonly ChatEvent[]])[] = [
      [[], []],
      [[start], []],
      [[start, text("a")], [told]],
      [[start, text("a"), stop], [told]],
    ];
    for (const [before, events] of beginnings) {
      const frames = [...before, exception];
      for (const pieces of [[streamOf(frames)], frames.map(frameOf)]) {
        const decoded = decode(pieces);
        expectDecoded(decoded, { name, events, ending: kind });
        expect(decoded.failure?.status).toBeUndefined();
      }
    }
  });
}

test("an exception has the service's message, without details of the operator", () => {
  const message =
    "The model returned the following errors: arn:aws:bedrock:us-east-1:123456789012:x is bad";
  const { failure } = decode([frameOf(["exception", "validationException", { message }])]);
  expect(failure?.message).toBe("[removed] is bad");
});

test("an exception is classified by its name when its body is empty or no JSON", () => {
  const headers = textHeaders({
    ":message-type": "exception",
    ":exception-type": "throttlingException",
  });
  for (const body of ["", "<html>", "[]", "null"]) {
    expect(decode([encodeFrame(headers, body)]).ending).toBe("throttled");
  }
});

test("events before a failure in the same piece are emitted", () => {
  const { events, ending } = decode([Buffer.concat([streamOf([text("a")]), Buffer.alloc(20, 7)])]);
  expect(events).toEqual([{ type: "text-delta", choice: 0, text: "a" }]);
  expect(ending).toBe("broken-answer");
});

test("anything but an event stream is broken: JSON, a page, nothing, other bytes", () => {
  const bodies = ["", "{}", '{"output":{}}', "<html></html>", "data: {}\n\n"];
  for (const body of bodies) {
    const decoded = decode([Buffer.from(body)]);
    expect({ body, ...decoded }).toMatchObject({ body, events: [], ending: "broken-answer" });
  }
});

test("an event whose payload is no JSON object is broken", () => {
  const headers = textHeaders({ ":message-type": "event", ":event-type": "contentBlockDelta" });
  for (const body of ["", "{", "[]", "null", "7", "[".repeat(100_000)]) {
    expect(decode([encodeFrame(headers, body)]).ending).toBe("broken-answer");
  }
});

test("payloads of any JSON give events or a failure, and nothing is thrown", () => {
  const kinds = ["contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"];
  const key = fc.constantFrom("contentBlockIndex", "delta", "text", "toolUse", "input", "start");
  const { payload } = fc.letrec((tie) => ({
    value: fc.oneof(fc.jsonValue(), tie("payload")),
    payload: fc.dictionary(key, tie("value"), { maxKeys: 3 }),
  }));
  const frame = fc.tuple(fc.constantFrom(...kinds, "metadata"), payload);
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 6 }), (frames) => {
      const { ending } = decode([streamOf(frames)]);
      expect(["done", "broken-answer"]).toContain(ending);
    }),
    { numRuns: 300 },
  );
});
