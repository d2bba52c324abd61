import { WaitingReader } from "../domain/waiting/flow.ts";
import { usdOfNano } from "../domain/money/usd.ts";
import { toGatewayError } from "../edge/replies/error-reply.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import type { MeteredStream } from "../call/metering/metered-stream.ts";
import type { StartedCall } from "../call/run-call.ts";
import type { AnswerFrames } from "../idempotency/answer.ts";
import { showsCost } from "./read-call.ts";
import type { StreamWriter } from "../wires/stream-writer.ts";

export type OpeningStream = Promise<StartedCall<MeteredStream>>;

/** The frames of a streamed answer that may not have begun. A failure becomes one error frame. */
export class ChatFrames implements AnswerFrames {
  ending: AnswerFrames["ending"];
  readonly #writer: StreamWriter;
  readonly #call: Pick<KeyCall, "id" | "dialect" | "snapshot" | "caller">;
  readonly #reader = new WaitingReader();
  #stream: MeteredStream | undefined;
  #openFailure: { readonly error: unknown } | undefined;
  /** The last frames, once the stream is over; a promise while the answer is being stored. */
  #last: string | Promise<string> | undefined;
  #isOver = false;

  constructor(
    opening: OpeningStream,
    writer: StreamWriter,
    call: Pick<KeyCall, "id" | "dialect" | "snapshot" | "caller">,
  ) {
    this.#writer = writer;
    this.#call = call;
    opening.then(
      ({ answer }) => this.#opened(answer),
      (error: unknown) => {
        this.#openFailure = { error };
        this.#reader.wake();
      },
    );
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  take(): string | undefined {
    if (this.#isOver) return undefined;
    try {
      if (this.#openFailure !== undefined) throw this.#openFailure.error;
      return this.#takeFrom(this.#stream);
    } catch (error) {
      this.#isOver = true;
      this.ending = "failed";
      const shown = toGatewayError(error);
      const { dialect, id } = this.#call;
      return this.#writer.fail(shown) ?? dialect.errorFrame(shown, id);
    }
  }

  whenReady(call: () => void): void {
    if (typeof this.#last === "string") call();
    else if (this.#stream === undefined || this.#last !== undefined) this.#reader.whenReady(call);
    else this.#stream.whenReady(call);
  }

  cancel(): void {
    this.#isOver = true;
    // The caller's signal ends an answer that has not begun; one that begins later is ended then.
    this.#stream?.cancel();
    this.#writer.cancel();
  }

  #opened(stream: MeteredStream): void {
    this.#stream = stream;
    if (this.#isOver) stream.cancel();
    else this.#reader.wake();
  }

  #takeFrom(stream: MeteredStream | undefined): string | undefined {
    if (stream === undefined) return undefined;
    for (let events = stream.take(); events !== undefined; events = stream.take()) {
      const frames = this.#writer.write(events);
      if (frames !== "") return frames;
    }
    if (!stream.isOver) return undefined;
    this.#last ??= this.#end(stream);
    if (this.#last instanceof Promise) return undefined;
    this.#isOver = true;
    this.ending = "whole";
    return this.#last;
  }

  #end({ usage: counts, costNano }: MeteredStream): string | Promise<string> {
    const isTold = showsCost(this.#call) && costNano !== undefined;
    const usage = isTold ? { ...counts, costUsd: usdOfNano(costNano) } : counts;
    const last = this.#writer.end(usage);
    if (last instanceof Promise) {
      void last.then((frames) => {
        this.#last = frames;
        this.#reader.wake();
      });
    }
    return last;
  }
}
