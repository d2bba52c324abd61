import fc from "fast-check";
import { expect, test } from "bun:test";
import type { ChatEvent } from "../../domain/chat/answer.ts";
import { CompletionStreamWriter } from "./write-stream.ts";

const text = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("", " a", "\0", "\n", '"'));
const choice = fc.integer({ min: 0, max: 2 });
const event: fc.Arbitrary<ChatEvent> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant("text-delta"), choice, text }) },
  fc.record({ type: fc.constant("refusal-delta"), choice, text }),
  fc.record({
    type: fc.constant("answer-start"),
    systemFingerprint: fc.option(text, { nil: undefined }),
    serviceTier: fc.constant(undefined),
  }),
  fc.record({
    type: fc.constant("choice-finish"),
    choice,
    finishReason: fc.constantFrom("stop", "length"),
  }),
);

test("the frames of texts are those that any delta with fields beside its text has", () => {
  const options = { id: "chatcmpl-1", created: 1, model: "alpha\0", wantsLogprobs: false };
  fc.assert(
    fc.property(fc.array(event), fc.boolean(), (events, includeUsage) => {
      const plain = new CompletionStreamWriter({ ...options, includeUsage });
      const general = new CompletionStreamWriter({ ...options, includeUsage });
      for (const each of events) {
        const same = each.type === "text-delta" ? { ...each, extra: {} } : each;
        expect(plain.write([each])).toBe(general.write([same]));
      }
    }),
  );
});
