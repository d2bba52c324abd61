import { expect, test } from "bun:test";
import {
  done,
  failure,
  frame,
  settle,
  SharedBench,
  SteppedFrames,
  type Caller,
} from "../../../test/support/shared-answers.ts";

const seeds = 400;
const steps = 60;
const leftBehind = '"code":"answer_not_kept"';

/** Numbers in [0, 1), the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = (seed + 1) * 2_654_435_761;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Callers that join, read and leave at random times, during an answer that arrives at random times.
 */
class Trial {
  readonly #random: () => number;
  readonly #frames: readonly string[];
  readonly #source: SteppedFrames;
  readonly #bench: SharedBench;
  readonly #limitBytes: number;
  readonly #isWhole: boolean;
  readonly #all: Caller[] = [];
  readonly #present = new Set<Caller>();
  readonly #reading: Promise<unknown>[] = [];

  constructor(seed: number) {
    this.#random = randomOf(seed);
    this.#isWhole = this.#random() < 0.8;
    const texts = Array.from({ length: this.#below(30) }, (_, index) =>
      frame(`${index}-${"x".repeat(this.#below(200))}`),
    );
    this.#frames = [...texts, this.#isWhole ? done : failure];
    this.#limitBytes = 200 + this.#below(4_000);
    this.#source = new SteppedFrames(this.#frames);
    this.#bench = new SharedBench(this.#source, { limitBytes: this.#limitBytes });
    this.#join();
    this.#bench.call.start();
  }

  async run(): Promise<{ readonly kept: number; readonly leftBehind: number }> {
    for (let step = 0; step < steps; step += 1) {
      this.#step();
      if (this.#random() < 0.7) await settle();
      this.#check();
    }
    // In the end all frames arrive and every remaining reader reads them.
    this.#source.allow(this.#frames.length + 2);
    for (const caller of this.#present) this.#read(caller, Number.POSITIVE_INFINITY);
    await settle();
    await Promise.all(this.#reading);
    await settle();
    this.#checkEnd();
    const { kept } = this.#bench;
    const behind = this.#all.filter(({ text }) => text.includes(leftBehind));
    return { kept: kept.length, leftBehind: behind.length };
  }

  #step(): void {
    const kind = this.#random();
    if (kind < 0.25) this.#join();
    else if (kind < 0.5) this.#source.allow(1 + this.#below(3));
    else if (kind < 0.9) this.#withSomebody((caller) => this.#read(caller, 1 + this.#below(4)));
    else this.#withSomebody((caller) => this.#leave(caller));
  }

  #join(): void {
    const { call } = this.#bench;
    // As in `RepeatableCalls`: an answer that has ended or is too large is not joined.
    if (this.#bench.ends > 0 || call.isTooLarge) return;
    const caller = this.#bench.join();
    this.#all.push(caller);
    this.#present.add(caller);
    this.#reading.push(caller.reader.answer().catch(() => undefined));
  }

  #read(caller: Caller, times: number): void {
    const read = async (): Promise<void> => {
      await caller.reader.answer().catch(() => undefined);
      for (let count = 0; count < times && !caller.hasEnded; count += 1) await caller.read();
      if (caller.hasEnded) this.#present.delete(caller);
    };
    this.#reading.push(read());
  }

  #leave(caller: Caller): void {
    this.#present.delete(caller);
    caller.leave();
  }

  #withSomebody(act: (caller: Caller) => void): void {
    const present = [...this.#present];
    const caller = present[this.#below(present.length)];
    if (caller !== undefined) act(caller);
  }

  #check(): void {
    const text = this.#frames.join("");
    for (const caller of this.#all) {
      const got = caller.text.includes(leftBehind)
        ? caller.text.slice(0, caller.text.lastIndexOf("data: "))
        : caller.text;
      expect(text.startsWith(got)).toBe(true);
    }
    expect(this.#bench.memory.heldBytes).toBeLessThanOrEqual(this.#limitBytes);
    expect(this.#bench.runs).toBe(1);
    expect(this.#source.asked).toBeLessThanOrEqual(this.#frames.length + 1);
  }

  #checkEnd(): void {
    this.#check();
    const text = this.#frames.join("");
    const finished = this.#all.some((caller) => caller.text === text);
    const { kept, ends, memory } = this.#bench;
    expect(memory.heldBytes).toBe(0);
    expect(ends).toBe(1);
    const isLarge = Buffer.byteLength(text) > this.#limitBytes;
    // A complete answer is kept once; one without readers is abandoned once.
    if (finished && this.#isWhole) {
      expect(kept.map((answer) => answer?.text)).toEqual([isLarge ? undefined : text]);
    }
    if (!this.#isWhole) expect(kept).toEqual([]);
    if (kept.length === 0 && this.#isWhole) expect(this.#source.cancels).toBe(1);
    if (kept.length > 0) expect(this.#source.cancels).toBe(0);
    // A reader that stayed gets everything, unless it fell behind.
    for (const caller of this.#all) {
      if (!caller.hasEnded || caller.text.includes(leftBehind)) continue;
      if (!caller.hasLeft) expect(caller.text).toBe(text);
    }
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}

test(`in ${seeds} orders of joining and leaving, an answer is made once and complete for who stays`, async () => {
  const sums = { kept: 0, leftBehind: 0 };
  for (let seed = 0; seed < seeds; seed += 1) {
    const result = await new Trial(seed).run().catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
    sums.kept += result.kept;
    sums.leftBehind += result.leftBehind;
  }
  process.stdout.write(
    `${seeds} orders of joining and leaving: ${sums.kept} answers kept, ` +
      `${sums.leftBehind} callers left behind\n`,
  );
  expect(sums.kept).toBeGreaterThan(seeds / 10);
  expect(sums.leftBehind).toBeGreaterThan(0);
}, 60_000);
