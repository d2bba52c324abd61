import { expect, test } from "bun:test";
import fc from "fast-check";
import type { ChatEvent } from "../../../domain/chat/chat.ts";
import { answerServices, decoderLimits } from "../../../../test/support/answer-decoding.ts";
import { ChatStreamDecoder } from "./decode-chat-stream.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";

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
      const together = new ChatStreamDecoder(answerServices(), decoderLimits);
      const got = frames.flatMap((frame) => together.push(Buffer.from(frame)));
      // None repeats another when each has its own id.
      const apart = new ChatStreamDecoder(answerServices(), decoderLimits);
      const expected = frames.flatMap((frame, place) =>
        apart.push(Buffer.from(frame.replace('"id":"1"', `"id":"${place}"`))),
      );
      expect(got).toEqual(expected);
    }),
  );
});
