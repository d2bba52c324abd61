import { expect, test } from "bun:test";
import fc from "fast-check";
import type { AnswerBlock, ChatEvent, ChatResult } from "../../src/domain/chat/answer.ts";
import { writeCompletion } from "../../src/wires/chat/write-answer.ts";
import { CompletionStreamWriter } from "../../src/wires/chat/write-stream.ts";
import { AnswerReader } from "../../src/upstreams/shared/openai/stream/answer-reader.ts";
import { ChatWire } from "../../src/upstreams/shared/openai/chat-codec.ts";
import { EventDecoder } from "../../src/upstreams/shared/answer-codec.ts";
import { collectAnswer } from "../../src/upstreams/shared/collect-answer.ts";
import { answerServices, decoderLimits } from "../support/answer-decoding.ts";

const text = fc.oneof(fc.string({ unit: "grapheme", minLength: 1 }), fc.constantFrom("\0", '"\n'));
const block: fc.Arbitrary<AnswerBlock> = fc.oneof(
  fc.record({ type: fc.constantFrom("text", "refusal", "reasoning"), text }),
  fc.record({
    type: fc.constant("tool-call"),
    id: fc.constant(""),
    kind: fc.constantFrom("function", "custom"),
    name: fc.constantFrom("f", "g"),
    arguments: fc.constantFrom('{"a":1}', '{"b":[1,{"c":"}"}]}'),
  }),
);
const finish = fc.constantFrom("stop", "length", "content_filter", "stop_sequence");
const choices = fc.array(fc.tuple(fc.array(block, { maxLength: 6 }), finish), {
  minLength: 1,
  maxLength: 2,
});

/** The events of answers that are told at the same time, each text in several deltas. */
function eventsOf(answers: readonly (readonly [readonly AnswerBlock[], string])[]): ChatEvent[] {
  const events: ChatEvent[] = [
    { type: "answer-start", systemFingerprint: undefined, serviceTier: undefined },
  ];
  answers.forEach(([blocks, reason], choice) => {
    let call = 0;
    for (const each of blocks) {
      if (each.type === "tool-call") {
        const { kind, name } = each;
        const id = `call_${choice}_${call}`;
        events.push({ type: "tool-call-start", choice, call, id, kind, name });
        for (const part of pieces(each.arguments)) {
          events.push({ type: "tool-call-delta", choice, call, arguments: part });
        }
        call += 1;
        continue;
      }
      const type = `${each.type}-delta` as const;
      for (const part of pieces(each.text)) events.push({ type, choice, text: part });
    }
    const finishReason = call > 0 && reason.startsWith("stop") ? "tool_calls" : reason;
    events.push({ type: "choice-finish", choice, finishReason } as ChatEvent);
  });
  return events;
}

/** Halves of characters do not stand alone. */
function pieces(said: string): readonly string[] {
  const characters = Array.from(said);
  const half = Math.ceil(characters.length / 2);
  return [characters.slice(0, half).join(""), characters.slice(half).join("")].filter(Boolean);
}

const about = { id: "chatcmpl-1", created: 1, model: "m" };
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 };

function bodyOf(answer: ChatResult): unknown {
  return JSON.parse(JSON.stringify(writeCompletion(answer, { ...about, usage })));
}

test("an answer in chat, whole or streamed, is read as what it was written from", () => {
  fc.assert(
    fc.property(choices, (answers) => {
      const events = eventsOf(answers);
      const answer = collectAnswer(events);
      const expected = bodyOf(answer);

      const whole: ChatEvent[] = [];
      new AnswerReader(answerServices()).readWhole(JSON.stringify(expected), whole);
      expect(bodyOf(collectAnswer(whole))).toEqual(expected);

      const options = { ...about, includeUsage: true, wantsLogprobs: false };
      const writer = new CompletionStreamWriter(options);
      const frames = Buffer.from(writer.write(events) + writer.end(usage));
      const decoder = new EventDecoder(new ChatWire(answerServices()), decoderLimits);
      const streamed = [...decoder.push(frames), ...decoder.end()];
      expect(decoder.failure).toBeUndefined();
      expect(bodyOf(collectAnswer(streamed))).toEqual(expected);
    }),
    { numRuns: 1_000 },
  );
});
