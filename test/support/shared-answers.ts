import type { AnswerFrames, KeptAnswer } from "../../src/idempotency/shared/answer.ts";
import { openAi } from "../../src/dialects/openai-dialect.ts";
import { AnswerMemory } from "../../src/idempotency/shared/answer-memory.ts";
import type { AnswerReader } from "../../src/idempotency/shared/answer-reader.ts";
import { SharedCall, type SharedCallOptions } from "../../src/idempotency/shared/shared-call.ts";
import { plainCall } from "../../src/snapshot/call.ts";
import { ManualClock } from "./manual-clock.ts";

export const done = "data: [DONE]\n\n";
export const failure = 'data: {"error":{"message":"broke off"}}\n\n';

export function frame(text: string): string {
  return `data: {"id":"${text}"}\n\n`;
}

/** A stream whose frames the test sends. */
export class SteppedFrames implements AnswerFrames {
  ending: AnswerFrames["ending"];
  /** How often it was cancelled. */
  cancels = 0;
  /** How often it was pulled. */
  asked = 0;
  readonly #frames: string[];
  #allowed = 0;
  #waiting: (() => void) | undefined;

  constructor(frames: readonly string[]) {
    this.#frames = [...frames];
  }

  async next(): Promise<string | undefined> {
    this.asked += 1;
    while (this.#allowed === 0 && this.cancels === 0) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    if (this.cancels > 0) return undefined;
    this.#allowed -= 1;
    const frames = this.#frames.shift();
    if (frames?.endsWith(done) === true) this.ending = "whole";
    if (frames === failure) this.ending = "failed";
    return frames;
  }

  cancel(): void {
    this.cancels += 1;
    this.#waiting?.();
  }

  /** Sends some more frames. */
  allow(count = 1): void {
    this.#allowed += count;
    this.#waiting?.();
  }
}

/** Lets all pending callbacks run. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** A shared call over frames that the test sends, and its state. */
export class SharedBench {
  readonly memory = new AnswerMemory(() => this.memoryLimitBytes);
  readonly kept: (KeptAnswer | undefined)[] = [];
  readonly call: SharedCall;
  memoryLimitBytes = 1_000_000;
  runs = 0;
  ends = 0;
  signal: AbortSignal | undefined;

  constructor(source: AnswerFrames, options: Partial<SharedCallOptions> = {}) {
    const answer = {
      status: 200,
      headers: { "content-type": "text/event-stream", "x-ratelimit-limit-requests": "5" },
      frames: source,
      keepAlive: ":\n\n",
      isEarly: false,
    } as const;
    this.call = new SharedCall({
      run: (signal) => {
        this.runs += 1;
        this.signal = signal;
        return Promise.resolve(answer);
      },
      keep: (kept) => {
        this.kept.push(kept);
        return Promise.resolve();
      },
      onEnd: () => void (this.ends += 1),
      limitBytes: 10_000,
      memory: this.memory,
      clock: new ManualClock(),
      ...options,
    });
  }

  join(deadlineAt?: number): Caller {
    return new Caller(this.call, deadlineAt);
  }
}

/** One caller of a shared call: what it has received. */
export class Caller {
  text = "";
  hasEnded = false;
  hasLeft = false;
  readonly reader: AnswerReader;
  readonly #leaving = new AbortController();

  constructor(call: SharedCall, deadlineAt?: number) {
    const options = { ...plainCall, deadlineAt };
    const { signal } = this.#leaving;
    this.reader = call.join({ signal, options, receivedAt: 0, dialect: openAi });
  }

  /** Reads the next frame. */
  async read(): Promise<string | undefined> {
    const text = await this.reader.next();
    if (text === undefined) this.hasEnded = true;
    else this.text += text;
    return text;
  }

  async readAll(): Promise<string> {
    await this.reader.answer();
    while ((await this.read()) !== undefined);
    return this.text;
  }

  leave(): void {
    this.hasLeft = true;
    this.#leaving.abort(new DOMException("left", "AbortError"));
  }
}
