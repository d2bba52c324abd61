import type { ChatEvent } from "../domain/chat/chat.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";
import type { Dialect } from "../edge/dialect.ts";
import { toGatewayError } from "../edge/replies/error-reply.ts";
import type { MeteredStream } from "../call/metering/metered-stream.ts";
import type { StartedCall } from "../call/run-call.ts";
import type { AnswerFrames } from "../idempotency/shared/answer.ts";

/** Writes the frames of one answer in a dialect's own form. */
export interface ChatWriter {
  /** Empty for events that have no frame. */
  write(events: readonly ChatEvent[]): string;
  /** The end of a whole answer. */
  end(usage: TokenUsage): string;
  /** An empty event, for clients that cannot parse comments. */
  keepAlive(): string;
}

export type OpeningStream = Promise<StartedCall<MeteredStream>>;

/**
 * The frames of a streamed chat answer that may still be opening. A failure becomes one error
 * frame.
 */
export class ChatFrames implements AnswerFrames {
  ending: AnswerFrames["ending"];
  readonly #opening: OpeningStream;
  readonly #writer: ChatWriter;
  readonly #dialect: Dialect;
  #stream: MeteredStream | undefined;
  #isOver = false;

  constructor(opening: OpeningStream, writer: ChatWriter, dialect: Dialect) {
    this.#opening = opening;
    this.#writer = writer;
    this.#dialect = dialect;
  }

  async next(): Promise<string | undefined> {
    try {
      while (!this.#isOver) {
        this.#stream ??= (await this.#opening).answer;
        const frames = this.#encode(await this.#stream.next(), this.#stream);
        if (frames !== "") return frames;
      }
      return undefined;
    } catch (error) {
      this.#isOver = true;
      this.ending = "failed";
      return this.#dialect.errorFrame(toGatewayError(error));
    }
  }

  cancel(): void {
    this.#isOver = true;
    // The caller's signal ends an answer that is still opening; one that opens later ends here.
    this.#opening.then(
      ({ answer }) => answer.cancel(),
      () => undefined,
    );
  }

  #encode(events: Awaited<ReturnType<MeteredStream["next"]>>, stream: MeteredStream): string {
    if (events !== undefined) return this.#writer.write(events);
    this.#isOver = true;
    this.ending = "whole";
    return this.#writer.end(stream.usage);
  }
}
