import type { FrameSource } from "../edge/replies/event-stream.ts";

/** About as much as is handed to a reader at once. */
const pieceCharacters = 16_384;

/** The frames of a kept answer, some at a time. */
export class ReplayedFrames implements FrameSource {
  #rest: string;

  constructor(text: string) {
    this.#rest = text;
  }

  next(): Promise<string | undefined> {
    if (this.#rest === "") return Promise.resolve(undefined);
    const frameEnd = this.#rest.indexOf("\n\n", pieceCharacters);
    const end = frameEnd < 0 ? this.#rest.length : frameEnd + 2;
    const piece = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end);
    return Promise.resolve(piece);
  }

  cancel(): void {
    this.#rest = "";
  }
}
