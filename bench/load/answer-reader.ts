const noBytes = Buffer.alloc(0);

/** Finds the end of each answer, by its length or by its last chunk. */
export class AnswerReader {
  status = 0;
  /** The received part of an incomplete head. */
  #head: Buffer = noBytes;
  #isInBody = false;
  #left = 0;
  #isChunked = false;

  /** True when these bytes complete an answer. */
  push(bytes: Buffer): boolean {
    if (this.#isInBody) return this.#take(bytes);
    // A head may arrive in pieces.
    const soFar = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes]);
    const headEnd = soFar.indexOf("\r\n\r\n");
    if (headEnd === -1) {
      this.#head = Buffer.from(soFar);
      return false;
    }
    this.#head = noBytes;
    return this.#begin(soFar.toString("latin1", 0, headEnd), soFar.subarray(headEnd + 4));
  }

  #begin(head: string, body: Buffer): boolean {
    this.status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    this.#isInBody = true;
    this.#isChunked = length === undefined;
    this.#left = Number(length ?? 0);
    return this.#take(body);
  }

  #take(bytes: Buffer): boolean {
    this.#left -= bytes.length;
    const isWhole = this.#isChunked ? endsChunks(bytes) : this.#left <= 0;
    if (isWhole) this.#isInBody = false;
    return isWhole;
  }
}

const lastChunk = Buffer.from("0\r\n\r\n");

/** True for the end of an answer without a length. */
export function endsChunks(bytes: Buffer): boolean {
  return bytes.subarray(-lastChunk.length).equals(lastChunk);
}
