import type { Clock } from "../../domain/clock.ts";
import type { Reply } from "../../edge/replies/reply.ts";
import {
  isStreamed,
  lastingHeaders,
  type Answer,
  type KeptAnswer,
  type OpenedAnswer,
} from "./answer.ts";
import type { AnswerMemory } from "./answer-memory.ts";
import { AnswerReader, type ReadCall, type ReaderCall } from "./answer-reader.ts";
import { SharedFrames } from "./shared-frames.ts";
import { SharedWork, type SharedWorkOptions } from "./shared-work.ts";

export interface SharedCallOptions extends SharedWorkOptions<Reply | OpenedAnswer> {
  /** Undefined for an answer that is too large. Resolves once repeats find the answer. */
  readonly keep: (answer: KeptAnswer | undefined) => Promise<void>;
  readonly limitBytes: number;
  readonly memory: AnswerMemory;
  readonly clock: Pick<Clock, "schedule" | "monotonic">;
}

/**
 * One call for all requests with the same `Idempotency-Key`. Its answer is kept before any caller
 * gets its end.
 */
export class SharedCall extends SharedWork<Answer, AnswerReader> implements ReadCall {
  readonly #options: SharedCallOptions;
  #frames: SharedFrames | undefined;
  #stream: OpenedAnswer | undefined;
  /** The answer is complete, failed or abandoned: callers that leave change nothing. */
  #isSettled = false;

  constructor(options: SharedCallOptions) {
    super(options);
    this.#options = options;
  }

  get frames(): SharedFrames | undefined {
    return this.#frames;
  }

  get isTooLarge(): boolean {
    return this.#frames?.isTooLarge === true;
  }

  join(call: ReaderCall): AnswerReader {
    const reader = new AnswerReader(this, call, this.#options.clock);
    this.waiters.add(reader);
    return reader;
  }

  protected override allLeft(reason: unknown): void {
    if (this.#isSettled) this.#frames?.release();
    else this.#abandonCall(reason);
  }

  protected override async run(signal: AbortSignal): Promise<Answer> {
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
    else if (body instanceof Uint8Array) await this.#keep(headers, this.#textOf(body));
    this.end();
    return answer;
  }

  /** Undefined if there are too many bytes. */
  #textOf(body: Uint8Array): Omit<KeptAnswer, "headers"> | undefined {
    if (body.byteLength > this.#options.limitBytes) return undefined;
    return { isStreamed: false, text: new TextDecoder().decode(body) };
  }

  #share(answer: OpenedAnswer): void {
    const { limitBytes, memory } = this.#options;
    this.#stream = answer;
    this.#frames = new SharedFrames({
      source: answer.frames,
      limitBytes,
      memory,
      readers: this.waiters,
      onWhole: async (text) => {
        const body = text === undefined ? undefined : { isStreamed: true, text };
        await this.#keep(answer.headers, body).finally(() => this.end());
      },
      onFailed: () => this.end(),
    });
  }

  async #keep(
    headers: Readonly<Record<string, string>>,
    body: Omit<KeptAnswer, "headers"> | undefined,
  ): Promise<void> {
    this.#isSettled = true;
    const fits = body !== undefined && Buffer.byteLength(body.text) <= this.#options.limitBytes;
    await this.#options.keep(fits ? { ...body, headers: lastingHeaders(headers) } : undefined);
  }

  /** The next repeat makes the call again. */
  #abandonCall(reason: unknown): void {
    this.abandon(reason);
    this.#stream?.frames.cancel();
    this.end();
    this.#frames?.release();
  }

  protected override end(): void {
    this.#isSettled = true;
    if (this.hasEnded) return;
    super.end();
    if (this.waiters.size === 0) this.#frames?.release();
  }
}
