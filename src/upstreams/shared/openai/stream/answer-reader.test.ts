import fc from "fast-check";
import { expect, test } from "bun:test";
import type { ChatEvent } from "../../../../domain/chat/answer.ts";
import { answerServices, decoderLimits } from "../../../../../test/support/answer-decoding.ts";
import { EventDecoder } from "../../answer-codec.ts";
import { ChatWire } from "../chat-codec.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";

interface Decoded {
  readonly events: readonly ChatEvent[];
  readonly failure: string | undefined;
  readonly isDone: boolean;
  readonly malformedEvents: number;
}

function decodePieces(pieces: readonly Uint8Array[], malformedEvents = 0): Decoded {
  const limits = { ...decoderLimits, malformedEvents };
  const decoder = new EventDecoder(new ChatWire(answerServices("call_new")), limits);
  const events: ChatEvent[] = [];
  for (const piece of pieces) {
    events.push(...decoder.push(piece));
    if (decoder.isDone || decoder.failure !== undefined) break;
  }
  if (!decoder.isDone && decoder.failure === undefined) events.push(...decoder.end());
  const { isDone, malformedEvents: malformed } = decoder;
  const failure = decoder.failure?.details.kind;
  return { events, failure, isDone, malformedEvents: malformed };
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (text: string): Decoded => decodePieces([bytesOf(text)]);
const frame = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`;
const delta = (value: object, finish: string | null = null, index = 0): string =>
  frame({ choices: [{ index, delta: value, finish_reason: finish }] });
const done = "data: [DONE]\n\n";

const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
const whole =
  delta({ role: "assistant", content: "" }) +
  delta({ content: "Grüße, 世界 " }) +
  ": a comment\n\n" +
  delta({ content: "👋🏽" }) +
  delta({
    tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "f", arguments: "" } }],
  }) +
  delta({ tool_calls: [{ index: 0, function: { arguments: '{"x":' } }] }) +
  delta({ tool_calls: [{ index: 0, function: { arguments: '"é"}' } }] }) +
  delta({}, "tool_calls") +
  frame({ choices: [], usage }) +
  done;

const expected: readonly ChatEvent[] = [
  { type: "answer-start", systemFingerprint: undefined, serviceTier: undefined },
  { type: "text-delta", choice: 0, text: "Grüße, 世界 " },
  { type: "text-delta", choice: 0, text: "👋🏽" },
  { type: "tool-call-start", choice: 0, call: 0, id: "a", kind: "function", name: "f" },
  { type: "tool-call-delta", choice: 0, call: 0, arguments: '{"x":' },
  { type: "tool-call-delta", choice: 0, call: 0, arguments: '"é"}' },
  { type: "choice-finish", choice: 0, finishReason: "tool_calls" },
  {
    type: "usage-report",
    usage: { inputTokens: 9, outputTokens: 3, cachedInputTokens: 0, reasoningTokens: 0 },
  },
];

test("the events are the same at every split point", () => {
  const bytes = bytesOf(whole);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const { events, failure, isDone } = decodePieces([bytes.subarray(0, cut), bytes.subarray(cut)]);
    expect({ cut, events, failure, isDone }).toEqual({
      cut,
      events: [...expected],
      failure: undefined,
      isDone: true,
    });
  }
});

test("the events are the same byte by byte, and in any pieces, with LF and with CRLF", () => {
  for (const text of [whole, whole.replaceAll("\n", "\r\n")]) {
    const bytes = bytesOf(text);
    expect(decodePieces(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))).events).toEqual([
      ...expected,
    ]);
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 20 });
    fc.assert(
      fc.property(cuts, (offsets) => {
        const sorted = [0, ...offsets.toSorted((one, other) => one - other), bytes.length];
        const pieces = sorted.slice(1).map((end, at) => bytes.subarray(sorted[at], end));
        expect(decodePieces(pieces).events).toEqual([...expected]);
      }),
      { numRuns: 200 },
    );
  }
});

test("an answer that is cut before its finish is never complete", () => {
  const bytes = bytesOf(whole);
  const finish = bytesOf(whole.slice(0, whole.indexOf(`"finish_reason":"tool_calls"`))).length;
  for (let end = 0; end <= finish; end += 1) {
    expect(decodePieces([bytes.subarray(0, end)])).toMatchObject({
      failure: "broken-answer",
      isDone: false,
    });
  }
});

test("after its finish an answer is complete, also without [DONE] and usage", () => {
  const text = delta({ content: "x" }) + delta({}, "stop");
  expect(decode(text).failure).toBeUndefined();
  expect(decode(text.trimEnd()).failure).toBeUndefined();
});

test("every choice needs a finish", () => {
  const first = delta({ content: "a" }, "stop", 0);
  const second = delta({ content: "b" }, null, 1);
  expect(decode(first + second + done)).toMatchObject({ failure: "broken-answer", isDone: false });
  expect(decode(first + second + delta({}, "length", 1) + done).isDone).toBe(true);
});

test("nothing after [DONE] is read", () => {
  const { events, isDone } = decode(whole + delta({ content: "more" }) + "data: {broken\n\n");
  expect(isDone).toBe(true);
  expect(events).toEqual([...expected]);
});

test("an error event ends the answer with a classified failure, after the text before it", () => {
  const error = frame({ error: { message: "Overloaded", type: "overloaded_error" } });
  const { events, failure } = decode(delta({ content: "x" }) + error + delta({ content: "y" }));
  expect(failure).toBe("overloaded");
  expect(events.map(({ type }) => type)).toEqual(["answer-start", "text-delta"]);
  expect(decode(frame({ error: { message: "Rate limit", code: 429 } })).failure).toBe("throttled");
  expect(decode(frame({ error: null, choices: [] })).failure).toBe("broken-answer");
  expect(decode(delta({ content: "x" }) + "data: {oops\n\n").failure).toBe("broken-answer");
});

test("a stream without an answer is broken", () => {
  const texts = [
    "",
    "<html>\n</html>\n",
    "data: 1\n\n",
    "data: []\n\n",
    done,
    "data:\n\n",
    ": x\n\n",
  ];
  for (const text of texts) expect(decode(text).failure).toBe("broken-answer");
});

test("malformed events are skipped and counted, for any split", () => {
  const text =
    delta({ content: "a" }) +
    "data: {oops\n\n" +
    delta({ content: "b" }) +
    "data: [\n\n" +
    delta({}, "stop") +
    done;
  const bytes = bytesOf(text);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)];
    const { events, isDone, malformedEvents } = decodePieces(pieces, 2);
    const texts = events.map((event) => (event.type === "text-delta" ? event.text : ""));
    expect([cut, texts.join(""), isDone, malformedEvents]).toEqual([cut, "ab", true, 2]);
  }
  expect(decodePieces([bytes], 1)).toMatchObject({ failure: "broken-answer", malformedEvents: 2 });
  expect(decodePieces([bytes], 0)).toMatchObject({ failure: "broken-answer", malformedEvents: 1 });
});

test("no malformed event is skipped before content, nor while a call is written", () => {
  const broken = "data: {oops\n\n";
  const role = delta({ role: "assistant" });
  const name = delta({ tool_calls: [{ index: 0, id: "a", function: { name: "f" } }] });
  const legacy = delta({ function_call: { name: "f", arguments: "{" } });
  for (const before of ["", role, name, legacy]) {
    const { failure, malformedEvents } = decodePieces([bytesOf(before + broken)], 10);
    expect([failure, malformedEvents]).toEqual(["broken-answer", 1]);
  }
  const after = name + delta({}, "tool_calls") + broken + done;
  expect(decodePieces([bytesOf(after)], 10)).toMatchObject({ isDone: true, malformedEvents: 1 });
});

test("an answer with only a finish reason is valid", () => {
  expect(decode(delta({ role: "assistant" }) + delta({}, "stop") + done).events).toEqual([
    { type: "answer-start", systemFingerprint: undefined, serviceTier: undefined },
    { type: "choice-finish", choice: 0, finishReason: "stop" },
  ]);
});

test("chunks of nonsense types neither throw nor lose the text between them", () => {
  const nonsense = fc.dictionary(
    fc.constantFrom("choices", "usage", "id", "model", "system_fingerprint", "object"),
    fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.array(
        fc.record({
          index: fc.constantFrom(0, -1, "0", null),
          delta: fc.jsonValue({ maxDepth: 2 }),
        }),
        { maxLength: 2 },
      ),
    ),
    { maxKeys: 4 },
  );
  fc.assert(
    fc.property(fc.array(nonsense, { maxLength: 4 }), (chunks) => {
      const { events } = decode(delta({ content: "before" }) + chunks.map(frame).join(""));
      expect(events[1]).toEqual({ type: "text-delta", choice: 0, text: "before" });
    }),
    { numRuns: 500 },
  );
});

function chunk(delta: object, more: object = {}): string {
  const choice = { index: 0, delta, logprobs: null, finish_reason: null };
  return JSON.stringify({ id: "chatcmpl-1", model: "m", choices: [choice], usage: null, ...more });
}

function textDelta(text: string) {
  return { type: "text-delta", choice: 0, text } as const;
}

function learned(data: string, text: string): RepeatedChunk {
  const repeated = new RepeatedChunk();
  repeated.learn(data, [textDelta(text)]);
  return repeated;
}

test("a chunk that differs in its text alone is read, whatever the text", () => {
  const repeated = learned(chunk({ content: "Hello" }), "Hello");
  const anyText = fc.oneof(
    fc.string({ minLength: 1 }),
    fc.string({ unit: "binary", minLength: 1 }),
  );
  fc.assert(
    fc.property(anyText, (text) => {
      expect(repeated.read(chunk({ content: text }))).toEqual(textDelta(text));
    }),
  );
});

test.each([
  ["another field of the delta", chunk({ content: "a", refusal: "b" })],
  ["a field of the same name", chunk({ content: "a", extra: 1, more: { content: "b" } })],
  ["an empty text", chunk({ content: "" })],
  ["no text", chunk({ content: null })],
  ["a number", chunk({ content: 1 })],
  ["a list of parts", chunk({ content: [{ type: "text", text: "a" }] })],
  ["usage", chunk({ content: "a" }, { usage: { prompt_tokens: 1 } })],
  ["another choice", chunk({ content: "a" }).replace('"index":0', '"index":1')],
  ["a finish", chunk({ content: "a" }).replace('"finish_reason":null', '"finish_reason":"stop"')],
  ["broken JSON", chunk({ content: "a" }).replace('"a"', '"a')],
  ["less than the known", chunk({ content: "a" }).slice(0, 60)],
])("a chunk with %s is left to be parsed", (_, data) => {
  expect(learned(chunk({ content: "Hello" }), "Hello").read(data)).toBeUndefined();
});

test("a field of the same name before the text is not taken for it", () => {
  const data = (text: string) => `{"content":"Hello",${chunk({ content: text }).slice(1)}`;
  expect(learned(data("Hello"), "Hello").read(data("there"))).toBeUndefined();
});

test("of two fields with the same name the last counts", () => {
  const data = (text: string) => chunk({ content: "Hello" }).replace("}", `,"content":"${text}"}`);
  expect(learned(data("Hello"), "Hello").read(data("there"))).toBeUndefined();
});

test("nothing is learned from chunks that say anything else", () => {
  const data = chunk({ content: "Hello" });
  const others: (readonly ChatEvent[])[] = [
    [],
    [textDelta("Hello"), textDelta("Hello")],
    [{ type: "refusal-delta", choice: 0, text: "Hello" }],
    [{ type: "text-delta", choice: 0, text: "Hello", logprobs: [1] }],
    [textDelta("another")],
  ];
  for (const events of others) {
    const repeated = new RepeatedChunk();
    repeated.learn(data, events);
    expect(repeated.read(data)).toBeUndefined();
  }
});

test("a stream gives the same events as its chunks parsed one by one", () => {
  const anyDelta = fc.oneof(
    { weight: 5, arbitrary: fc.record({ content: fc.string() }) },
    fc.record({ content: fc.string(), refusal: fc.constantFrom(null, "no") }),
    fc.record({ content: fc.string({ unit: "binary" }), reasoning: fc.constantFrom("", "so") }),
  );
  const anyChunk = fc.tuple(anyDelta, fc.nat({ max: 1 }), fc.constantFrom("", " "));
  fc.assert(
    fc.property(fc.array(anyChunk, { maxLength: 12 }), (chunks) => {
      const frames = chunks.map(([delta, index, space]) => {
        const choice = { index, delta, finish_reason: null };
        const data = JSON.stringify({ id: "1", choices: [choice] });
        return `data: ${data.replace('"content":', `"content":${space}`)}\n\n`;
      });
      const together = new EventDecoder(new ChatWire(answerServices()), decoderLimits);
      const got = frames.flatMap((frame) => together.push(Buffer.from(frame)));
      // None repeats another when each has its own id.
      const apart = new EventDecoder(new ChatWire(answerServices()), decoderLimits);
      const expected = frames.flatMap((frame, place) =>
        apart.push(Buffer.from(frame.replace('"id":"1"', `"id":"${place}"`))),
      );
      expect(got).toEqual(expected);
    }),
  );
});
