import type { EmbeddingVector } from "../../domain/chat/embedding.ts";
import type { FrameSource } from "../../edge/replies/event-stream.ts";
import type { AnswerMemory } from "../../snapshot/call.ts";

export interface EmbeddingTextParts {
  readonly vectors: readonly EmbeddingVector[];
  readonly format: "float" | "base64";
  /** The JSON after the list of vectors. */
  readonly end: string;
  /** Given back as vectors are written. */
  readonly memory: AnswerMemory;
}

/** Short enough that many answers are written at once; numbers take longer than their text. */
const sliceLengths = { float: 16 * 1024, base64: 256 * 1024 } as const;

/** The text of an answer, written a slice in each turn of the event loop. It takes the vectors. */
export class EmbeddingText implements FrameSource {
  readonly #parts: EmbeddingTextParts;
  #vectors: (EmbeddingVector | undefined)[];
  #bytes: number;
  #next = 0;
  #isOver = false;
  /** Whether a slice was taken in this turn. */
  #isTaken = false;

  constructor(parts: EmbeddingTextParts) {
    this.#parts = parts;
    this.#vectors = [...parts.vectors];
    this.#bytes = parts.vectors.reduce((sum, { byteLength }) => sum + byteLength, 0);
    parts.memory.shrinkTo(this.#bytes);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  take(): string | undefined {
    if (this.#isOver || this.#isTaken) return undefined;
    this.#isTaken = true;
    return this.#slice();
  }

  whenReady(call: () => void): void {
    setImmediate(() => {
      this.#isTaken = false;
      call();
    });
  }

  cancel(): void {
    this.#isOver = true;
    for (const vector of this.#vectors) vector?.release();
    this.#vectors = [];
    this.#parts.memory.release();
  }

  #slice(): string {
    const { format, end, memory } = this.#parts;
    let text = this.#next === 0 ? '{"object":"list","data":[' : "";
    while (text.length < sliceLengths[format]) {
      const vector = this.#vectors[this.#next];
      if (vector === undefined) {
        this.#isOver = true;
        return text + end;
      }
      const separator = this.#next === 0 ? "" : ",";
      text += `${separator}{"object":"embedding","index":${this.#next},"embedding":${written(vector, format)}}`;
      this.#vectors[this.#next] = undefined;
      this.#bytes -= vector.byteLength;
      vector.release();
      this.#next += 1;
    }
    memory.shrinkTo(this.#bytes);
    return text;
  }
}

function written(vector: EmbeddingVector, format: EmbeddingTextParts["format"]): string {
  return format === "base64" ? `"${vector.base64}"` : JSON.stringify(Array.from(vector.numbers));
}
