import { abortable } from "../../domain/waiting/abortable.ts";
import type { Clock } from "../../domain/clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Dialect } from "../../edge/dialect.ts";
import { toGatewayError } from "../../edge/replies/error-reply.ts";
import type { FrameSource } from "../../edge/replies/event-stream.ts";
import type { Call } from "../../snapshot/call.ts";
import { atDeadline } from "../../domain/waiting/at-deadline.ts";
import { isStreamed, type Answer } from "./answer.ts";
import type { FrameReader, SharedFrames } from "./shared-frames.ts";

/** A shared call as its readers use it. */
export interface ReadCall {
  /** Rejects when the call fails before there is an answer. */
  readonly answer: Promise<Answer>;
  /** Set once a streamed answer opens. */
  readonly frames: SharedFrames | undefined;
  leave(reader: AnswerReader, reason: unknown): void;
}

export type ReaderCall = Pick<Call, "signal" | "options" | "receivedAt"> & {
  readonly dialect: Pick<Dialect, "errorFrame">;
};

/** One caller of a shared call; ends on its own when it leaves, times out or falls behind. */
export class AnswerReader implements FrameSource, FrameReader {
  position = 0;
  readonly #shared: ReadCall;
  readonly #call: ReaderCall;
  readonly #end = new AbortController();
  readonly #onLeft = (): void => this.#endWith(this.#call.signal.reason);
  readonly #cancelDeadline: () => void;
  #hasLeft = false;
  #hasLastFrame = false;

  constructor(shared: ReadCall, call: ReaderCall, clock: Pick<Clock, "schedule" | "monotonic">) {
    this.#shared = shared;
    this.#call = call;
    this.#cancelDeadline = atDeadline(call, clock, (error) => this.#endWith(error));
    call.signal.addEventListener("abort", this.#onLeft, { once: true });
  }

  /** The answer for this caller, with this reader as the source of a stream's frames. */
  async answer(): Promise<Answer> {
    try {
      const answer = await abortable(this.#shared.answer, this.#end.signal);
      if (!isStreamed(answer)) {
        this.cancel();
        return answer;
      }
      const isEarly = answer.isEarly && this.#shared.frames?.isEmpty !== false;
      return { ...answer, frames: this, isEarly };
    } catch (error) {
      this.cancel();
      throw error;
    }
  }

  async next(): Promise<string | undefined> {
    const { frames } = this.#shared;
    const { signal } = this.#end;
    try {
      while (frames !== undefined && !this.#hasLeft) {
        const text = frames.read(this);
        if (text !== undefined) return text;
        if (frames.isEnded) break;
        await abortable(frames.advance(), signal);
      }
    } catch (error) {
      if (!signal.aborted) return this.#lastFrame(toGatewayError(error));
    }
    if (signal.aborted && signal.reason instanceof GatewayError) {
      return this.#lastFrame(signal.reason);
    }
    this.cancel();
    return undefined;
  }

  /** Ends this caller's reading only. */
  cancel(): void {
    this.#leave(this.#call.signal.reason);
  }

  fallBehind(): void {
    this.#endWith(
      new GatewayError("answer_not_kept", {
        message:
          "There is no more room to hold this answer for a caller who reads it more slowly than " +
          "others. Those who read it faster still get it.",
      }),
    );
  }

  #lastFrame(error: GatewayError): string | undefined {
    this.cancel();
    if (this.#hasLastFrame) return undefined;
    this.#hasLastFrame = true;
    return this.#call.dialect.errorFrame(error);
  }

  #endWith(reason: unknown): void {
    if (this.#hasLeft) return;
    this.#end.abort(reason);
    this.#leave(reason);
  }

  #leave(reason: unknown): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#cancelDeadline();
    this.#call.signal.removeEventListener("abort", this.#onLeft);
    this.#shared.leave(this, reason);
  }
}
