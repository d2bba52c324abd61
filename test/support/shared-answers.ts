import type { AnswerFrames, KeptAnswer } from "../../src/idempotency/shared/answer.ts";
import { openAi } from "../../src/dialects/openai-dialect.ts";
import { AnswerMemory } from "../../src/idempotency/shared/answer-memory.ts";
import type { AnswerReader } from "../../src/idempotency/shared/answer-reader.ts";
import { SharedCall, type SharedCallOptions } from "../../src/idempotency/shared/shared-call.ts";
import { nextOf, WaitingReader } from "../../src/domain/waiting/flow.ts";
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
  /** How many frames were taken. */
  asked = 0;
  readonly #frames: string[];
  #allowed = 0;
  readonly #reader = new WaitingReader();

  constructor(frames: readonly string[]) {
    this.#frames = [...frames];
  }

  get isOver(): boolean {
    return this.cancels > 0 || this.#frames.length === 0;
  }

  take(): string | undefined {
    if (this.#allowed === 0 || this.isOver) return undefined;
    this.asked += 1;
    this.#allowed -= 1;
    const frames = this.#frames.shift();
    if (frames?.endsWith(done) === true) this.ending = "whole";
    if (frames === failure) this.ending = "failed";
    return frames;
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
  }

  cancel(): void {
    this.cancels += 1;
    this.#reader.wake();
  }

  /** Sends some more frames. */
  allow(count = 1): void {
    this.#allowed += count;
    this.#reader.wake();
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
  #lastRead: Promise<string | undefined> = Promise.resolve(undefined);

  constructor(call: SharedCall, deadlineAt?: number) {
    const options = { ...plainCall, deadlineAt };
    const { signal } = this.#leaving;
    this.reader = call.join({ signal, options, receivedAt: 0, dialect: openAi });
  }

  /** Reads the next frame, after the reads before it. */
  read(): Promise<string | undefined> {
    this.#lastRead = this.#lastRead.then(() => this.#readNext());
    return this.#lastRead;
  }

  async #readNext(): Promise<string | undefined> {
    const text = await nextOf(this.reader);
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
