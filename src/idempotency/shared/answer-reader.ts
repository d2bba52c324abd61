import { abortable } from "../../domain/waiting/abortable.ts";
import type { Clock } from "../../domain/clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Dialect } from "../../edge/dialect.ts";
import { toGatewayError } from "../../edge/replies/error-reply.ts";
import type { FrameSource } from "../../edge/replies/event-stream.ts";
import { WaitingReader } from "../../domain/waiting/flow.ts";
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
  readonly #reader = new WaitingReader();
  #hasLeft = false;
  /** The error that ended this caller's reading, until it is taken. */
  #lastFrame: string | undefined;

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

  get isOver(): boolean {
    return this.#hasLeft && this.#lastFrame === undefined;
  }

  take(): string | undefined {
    const { frames } = this.#shared;
    if (!this.#hasLeft && frames !== undefined) {
      try {
        const text = frames.take(this);
        if (text !== undefined) return text;
        if (frames.isEnded) this.cancel();
      } catch (error) {
        this.#leaveWith(toGatewayError(error));
      }
    }
    const last = this.#lastFrame;
    this.#lastFrame = undefined;
    return last;
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
    this.#shared.frames?.whenReady(this, this.#reader.wake);
  }

  /** Ends this caller's reading only. */
  cancel(): void {
    this.#leave(this.#call.signal.reason);
  }

  fallBehind(): void {
    this.#endWith(
      new GatewayError("answer_not_kept", {
        message:
          "There is no memory left to hold this answer for a caller that reads more slowly than " +
          "others. Faster readers still get it.",
      }),
    );
  }

  #endWith(reason: unknown): void {
    if (this.#hasLeft) return;
    this.#end.abort(reason);
    if (reason instanceof GatewayError) this.#leaveWith(reason);
    else this.#leave(reason);
    this.#reader.wake();
  }

  #leaveWith(error: GatewayError): void {
    this.#lastFrame = this.#call.dialect.errorFrame(error);
    this.#leave(error);
  }

  #leave(reason: unknown): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#shared.frames?.forget(this);
    this.#cancelDeadline();
    this.#call.signal.removeEventListener("abort", this.#onLeft);
    this.#shared.leave(this, reason);
  }
}
