export interface UpstreamRequest {
  readonly path: string;
  readonly body: Buffer;
}

/** Splits the bytes of a connection into requests. Supports only the requests of this suite. */
export class RequestReader {
  #pending: Buffer = Buffer.alloc(0);

  push(bytes: Buffer): readonly UpstreamRequest[] {
    this.#pending =
      this.#pending.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#pending, bytes]);
    const requests: UpstreamRequest[] = [];
    for (let next = this.#take(); next !== undefined; next = this.#take()) requests.push(next);
    return requests;
  }

  #take(): UpstreamRequest | undefined {
    const headEnd = this.#pending.indexOf("\r\n\r\n");
    if (headEnd === -1) return undefined;
    const head = this.#pending.toString("latin1", 0, headEnd);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    const end = headEnd + 4 + length;
    if (this.#pending.length < end) return undefined;
    const body = this.#pending.subarray(headEnd + 4, end);
    this.#pending = this.#pending.subarray(end);
    return { path: head.split(" ", 2)[1] ?? "", body };
  }
}
