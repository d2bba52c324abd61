import { errorFrame, toGatewayError } from "../../edge/replies/error-reply.ts";
import type { FrameSource } from "../../edge/replies/event-stream.ts";
import type { MeteredStream } from "../../call/metering/metered-stream.ts";
import type { StartedCall } from "../../call/run-call.ts";
import type { ChatChunkWriter } from "./chat-chunks.ts";

export type OpeningStream = Promise<StartedCall<MeteredStream>>;

/**
 * The frames of a streamed chat answer, from an answer that may still be opening. A failure
 * becomes one error frame, without `[DONE]`.
 */
export class ChatFrames implements FrameSource {
  readonly #opening: OpeningStream;
  readonly #writer: ChatChunkWriter;
  #stream: MeteredStream | undefined;
  #isOver = false;

  constructor(opening: OpeningStream, writer: ChatChunkWriter) {
    this.#opening = opening;
    this.#writer = writer;
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
      return errorFrame(toGatewayError(error));
    }
  }

  cancel(): void {
    this.#isOver = true;
    // An answer that is still opening ends through the caller's signal; a late one ends here.
    this.#opening.then(
      ({ answer }) => answer.cancel(),
      () => undefined,
    );
  }

  #encode(events: Awaited<ReturnType<MeteredStream["next"]>>, stream: MeteredStream): string {
    if (events !== undefined) return this.#writer.write(events);
    this.#isOver = true;
    return this.#writer.end(stream.usage);
  }
}
