import { beforeEach, expect, test } from "bun:test";
import { EndSource } from "../domain/waiting/end-signal.ts";
import { nextOf, WaitingReader } from "../domain/waiting/flow.ts";
import type { AnswerFrames } from "./answer.ts";
import { AnswerMemory, KeptFrames } from "./kept-frames.ts";

const done = "data: [DONE]\n\n";
const failure = 'data: {"error":{"message":"broke off"}}\n\n';

/** A stream whose frames the test sends. */
class SteppedFrames implements AnswerFrames {
  ending: AnswerFrames["ending"];
  cancels = 0;
  readonly #frames: string[] = [];
  readonly #reader = new WaitingReader();
  #hasEnded = false;

  get isOver(): boolean {
    return this.cancels > 0 || (this.#hasEnded && this.#frames.length === 0);
  }

  send(...frames: readonly string[]): void {
    this.#frames.push(...frames);
    if (frames.some((frame) => frame === done || frame === failure)) this.#hasEnded = true;
    this.#reader.wake();
  }

  take(): string | undefined {
    const frame = this.#frames.shift();
    if (frame === done) this.ending = "whole";
    if (frame === failure) this.ending = "failed";
    return frame;
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
  }

  cancel(): void {
    this.cancels += 1;
    this.#reader.wake();
  }
}

let source: SteppedFrames;
let memory: AnswerMemory;
let limitBytes: number;
let caller: EndSource;
let kept: (string | undefined)[];
let keeping: PromiseWithResolvers<void>;
let failures: number;
beforeEach(() => {
  source = new SteppedFrames();
  memory = new AnswerMemory(() => 1_000);
  limitBytes = 500;
  caller = new EndSource();
  kept = [];
  keeping = Promise.withResolvers();
  failures = 0;
});

function open(): KeptFrames {
  return new KeptFrames({
    source,
    signal: caller,
    limitBytes,
    memory,
    keep(text) {
      kept.push(text);
      return keeping.promise;
    },
    onFailed: () => void (failures += 1),
  });
}

async function readAll(frames: KeptFrames): Promise<string> {
  let text = "";
  for (let next = await nextOf(frames); next !== undefined; next = await nextOf(frames)) {
    text += next;
  }
  return text;
}

test("frames pass as they come, and the last one once the answer is kept", async () => {
  const frames = open();
  source.send("one\n\n");
  expect(frames.take()).toBe("one\n\n");
  expect(frames.take()).toBeUndefined();
  source.send("two\n\n", done);
  expect(frames.take()).toBe("two\n\n");
  expect(memory.heldBytes).toBe(10);
  const rest = readAll(frames);
  await Bun.sleep(0);
  expect(kept).toEqual([`one\n\ntwo\n\n${done}`]);
  expect(frames.isOver).toBe(false);
  keeping.resolve();
  expect(await rest).toBe(done);
  expect(frames.isOver).toBe(true);
  expect([memory.heldBytes, failures, source.cancels]).toEqual([0, 0, 0]);
});

test("an answer above the limit of one passes, and is kept as too large", async () => {
  limitBytes = 20;
  keeping.resolve();
  source.send("x".repeat(15), "y".repeat(15), done);
  expect(await readAll(open())).toBe("x".repeat(15) + "y".repeat(15) + done);
  expect(kept).toEqual([undefined]);
  expect(memory.heldBytes).toBe(0);
});

test("all answers together stay within the memory", async () => {
  limitBytes = 900;
  keeping.resolve();
  source.send("x".repeat(600), done);
  expect(memory.tryTake(500)).toBe(true);
  expect(await readAll(open())).toBe("x".repeat(600) + done);
  expect(kept).toEqual([undefined]);
  expect(memory.heldBytes).toBe(500);
});

test("an answer that fails passes with its error, and is not kept", async () => {
  source.send("one\n\n", failure);
  expect(await readAll(open())).toBe(`one\n\n${failure}`);
  expect([kept, failures, memory.heldBytes]).toEqual([[], 1, 0]);
});

test("a caller that leaves ends the answer, whether it reads or not", () => {
  for (const leave of [
    (frames: KeptFrames) => frames.cancel(),
    () => caller.abort(new Error("left")),
  ]) {
    source = new SteppedFrames();
    caller = new EndSource();
    failures = 0;
    const frames = open();
    source.send("one\n\n");
    frames.take();
    leave(frames);
    leave(frames);
    expect([source.cancels, failures, memory.heldBytes, frames.isOver]).toEqual([1, 1, 0, true]);
  }
});

test("an answer whose caller has left already is ended at once", () => {
  caller.abort(new Error("left"));
  open();
  expect([source.cancels, failures]).toEqual([1, 1]);
});

test("a caller that leaves while the whole answer is being kept changes nothing", async () => {
  const frames = open();
  source.send(done);
  const rest = readAll(frames);
  frames.cancel();
  keeping.resolve();
  await keeping.promise;
  expect(kept).toEqual([done]);
  expect([source.cancels, failures]).toEqual([0, 0]);
  expect(frames.take()).toBeUndefined();
  await Promise.race([rest, Bun.sleep(1)]);
});
