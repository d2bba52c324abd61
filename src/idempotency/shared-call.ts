import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { KeptAnswer } from "./answer-seal.ts";
import type { Reply } from "../edge/replies/reply.ts";
import { isStreamed, lastingHeaders, type Answer, type OpenedAnswer } from "./answer.ts";
import type { AnswerMemory } from "./answer-memory.ts";
import { AnswerReader, type ReadCall, type ReaderCall } from "./answer-reader.ts";
import { SharedFrames } from "./shared-frames.ts";

export interface SharedCallOptions {
  /** Tells which requests may share it. */
  readonly requestDigest: string;
  /** Makes the call. The signal fires when nobody waits for its answer any more. */
  readonly run: (signal: AbortSignal) => Promise<Reply | OpenedAnswer>;
  /** Undefined: it was answered, and the answer is too large. Resolves once repeats find it. */
  readonly keep: (answer: KeptAnswer | undefined) => Promise<void>;
  /** Told once, when nobody can join any more. */
  readonly onEnd: () => void;
  readonly limitBytes: number;
  readonly memory: AnswerMemory;
  readonly clock: Pick<Clock, "schedule" | "monotonic">;
}

/**
 * One call for all who asked for it with the same `Idempotency-Key`. It is made once, goes on as
 * long as anybody waits for it, and what it answers is kept before anybody has seen the end of it.
 */
export class SharedCall implements ReadCall {
  readonly #options: SharedCallOptions;
  readonly #abandonment = new AbortController();
  readonly #readers = new Set<AnswerReader>();
  readonly #result = Promise.withResolvers<Answer>();
  #frames: SharedFrames | undefined;
  #stream: OpenedAnswer | undefined;
  /** From here on nobody who leaves changes anything: it is whole, has failed, or was given up. */
  #isSettled = false;
  #hasEnded = false;

  constructor(options: SharedCallOptions) {
    this.#options = options;
    // It may fail when nobody is there to hear of it.
    this.#result.promise.catch(() => undefined);
  }

  get requestDigest(): string {
    return this.#options.requestDigest;
  }

  get answer(): Promise<Answer> {
    return this.#result.promise;
  }

  get frames(): SharedFrames | undefined {
    return this.#frames;
  }

  get isTooLarge(): boolean {
    return this.#frames?.isTooLarge === true;
  }

  /** Once, after the first reader has joined. */
  start(): void {
    this.#run().then(this.#result.resolve, (error: unknown) => {
      this.#end();
      this.#result.reject(error);
    });
  }

  join(call: ReaderCall): AnswerReader {
    const reader = new AnswerReader(this, call, this.#options.clock);
    this.#readers.add(reader);
    return reader;
  }

  leave(reader: AnswerReader, reason: unknown): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    if (this.#isSettled) this.#frames?.release();
    else this.#giveUp(reason);
  }

  async #run(): Promise<Answer> {
    const { signal } = this.#abandonment;
    const answer = await this.#options.run(signal);
    if (isStreamed(answer)) {
      if (signal.aborted) answer.frames.cancel();
      signal.throwIfAborted();
      this.#share(answer);
      return answer;
    }
    signal.throwIfAborted();
    const { body, headers } = answer;
    if (typeof body === "string") await this.#keep(headers, { isStreamed: false, text: body });
    this.#end();
    return answer;
  }

  #share(answer: OpenedAnswer): void {
    const { limitBytes, memory } = this.#options;
    this.#stream = answer;
    this.#frames = new SharedFrames({
      source: answer.frames,
      limitBytes,
      memory,
      readers: this.#readers,
      onWhole: async (text) => {
        const said = text === undefined ? undefined : { isStreamed: true, text };
        await this.#keep(answer.headers, said).finally(() => this.#end());
      },
      onFailed: () => this.#end(),
    });
  }

  async #keep(
    headers: Readonly<Record<string, string>>,
    said: Omit<KeptAnswer, "headers"> | undefined,
  ): Promise<void> {
    this.#isSettled = true;
    const isHeld = said !== undefined && Buffer.byteLength(said.text) <= this.#options.limitBytes;
    await this.#options.keep(isHeld ? { ...said, headers: lastingHeaders(headers) } : undefined);
  }

  /** A repeat makes the call anew from here on. */
  #giveUp(reason: unknown): void {
    const frames = this.#frames;
    const stop = (): void => this.#stream?.frames.cancel();
    this.#abandonment.abort(reason);
    // The ledger is told why, unless the callers just left: by the stream, when it meets the signal.
    if (reason instanceof GatewayError && frames !== undefined) frames.advance().then(stop, stop);
    else stop();
    this.#end();
    frames?.release();
  }

  #end(): void {
    this.#isSettled = true;
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#options.onEnd();
    if (this.#readers.size === 0) this.#frames?.release();
  }
}
