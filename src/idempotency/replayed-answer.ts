import { keepAliveComment, type FrameSource } from "../edge/replies/event-stream.ts";
import type { Answer, KeptAnswer } from "./shared/answer.ts";

/** A kept answer as it is sent again. */
export function replayedAnswer({ headers, isStreamed: wasStreamed, text }: KeptAnswer): Answer {
  if (!wasStreamed) return { status: 200, headers, body: text };
  // A replay is never silent, so no keep-alive is ever sent.
  const frames = new ReplayedFrames(text);
  return { status: 200, headers, frames, keepAlive: keepAliveComment, isEarly: false };
}

/** The size of a piece, up to the end of its last frame. */
const pieceCharacters = 16_384;

/** The frames of a kept answer, in pieces. */
class ReplayedFrames implements FrameSource {
  #rest: string;

  constructor(text: string) {
    this.#rest = text;
  }

  take(): string | undefined {
    if (this.isOver) return undefined;
    const frameEnd = this.#rest.indexOf("\n\n", pieceCharacters);
    const end = frameEnd < 0 ? this.#rest.length : frameEnd + 2;
    const piece = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end);
    return piece;
  }

  get isOver(): boolean {
    return this.#rest === "";
  }

  whenReady(call: () => void): void {
    call();
  }

  cancel(): void {
    this.#rest = "";
  }
}
