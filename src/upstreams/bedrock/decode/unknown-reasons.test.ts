import { expect, test } from "bun:test";
import { contextOf, streamOf } from "../../../../test/support/bedrock-frames.ts";
import {
  converseDecoder,
  decodeConverse,
  decoderLimits,
} from "../../../../test/support/answer-decoding.ts";
import { unknownFinishReport } from "../../shared/finish-words.ts";

function wholeAnswer(stopReason: string): Uint8Array {
  const message = { role: "assistant", content: [{ text: "a" }] };
  return new TextEncoder().encode(JSON.stringify({ output: { message }, stopReason }));
}

test("every way of reading an answer reports an unknown reason, and no other", () => {
  const told: string[] = [];
  const onUnknown = (reason: string): void => void told.push(reason);
  for (const stopReason of ["end_turn", "tool_use", "max_tokens", "content_filtered", "tired"]) {
    const body = wholeAnswer(stopReason);
    decodeConverse({ headers: new Headers(), body }, contextOf(), onUnknown);
    const reader = { context: contextOf(), onUnknownFinish: onUnknown };
    const replay = converseDecoder(reader, decoderLimits);
    replay.push(body);
    replay.end();
    const stream = converseDecoder(reader, decoderLimits);
    const said = ["contentBlockDelta", { delta: { text: "a" } }] as const;
    stream.push(streamOf([said, ["messageStop", { stopReason }]]));
    stream.end();
    expect([replay.isDone, stream.isDone]).toEqual([true, true]);
  }
  expect(told).toEqual(["tired", "tired", "tired"]);
});

test("each unknown reason is reported to the operator once", () => {
  const troubles: string[] = [];
  const report = unknownFinishReport((what) => troubles.push(what));
  for (const reason of ["pause_turn", "tired", "pause_turn", "tired"]) report(reason);
  expect(troubles).toEqual([
    "an answer ended for an unknown reason and was treated as finished: pause_turn",
    "an answer ended for an unknown reason and was treated as finished: tired",
  ]);
});

test("a malformed reason is not logged", () => {
  const troubles: string[] = [];
  const report = unknownFinishReport((what) => troubles.push(what));
  report("the prompt said: hello");
  report("another one");
  expect(troubles.length).toBe(1);
  expect(troubles[0]).not.toContain("hello");
});

test("an upstream that invents reasons fills neither memory nor log", () => {
  const troubles: string[] = [];
  const report = unknownFinishReport((what) => troubles.push(what));
  for (let count = 0; count < 1_000; count += 1) report(`reason_${count}`);
  expect(troubles.length).toBe(32);
});
