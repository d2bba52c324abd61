import { ChunkedBody } from "./chunked-body.ts";
import { HeadBytes, ProtocolError, readHead, type ResponseHead } from "./response-head.ts";

/** Gets an answer as it is read. */
export interface AnswerReceiver {
  onHead(head: ResponseHead): void;
  /** A piece of the body, never empty. It belongs to the receiver. */
  onBody(bytes: Uint8Array): void;
  /** The answer is complete. */
  onEnd(): void;
}

/** Interim answers (1xx) before the answer itself. */
const mostInterim = 8;
const switchingProtocols = 101;

/** Reads the answers of a connection, one after another, however their bytes are split. */
export class ResponseReader {
  readonly #head = new HeadBytes();
  #receiver: AnswerReceiver | undefined;
  #chunked: ChunkedBody | undefined;
  /** Bytes of the body still to come; Infinity until the connection closes. */
  #remaining = 0;
  #interim = 0;
  #phase: "head" | "body" | "over" = "over";
  #hasBegun = false;
  #hasSurplus = false;
  #keepsOpen = false;
  #keepAliveSeconds: number | undefined;

  /** Whether any byte of the answer has arrived. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** Whether the connection can carry another request, after the answer. */
  get keepsOpen(): boolean {
    return this.#keepsOpen && !this.#hasSurplus;
  }

  get keepAliveSeconds(): number | undefined {
    return this.#keepAliveSeconds;
  }

  /** Expects an answer. */
  begin(receiver: AnswerReceiver): void {
    this.#receiver = receiver;
    this.#phase = "head";
    this.#interim = 0;
    this.#hasBegun = false;
    this.#keepsOpen = false;
  }

  /** Throws `ProtocolError`. */
  push(bytes: Buffer): void {
    this.#hasBegun = true;
    let at = 0;
    while (at < bytes.length && this.#phase === "head") at = this.#readHead(bytes, at);
    if (at < bytes.length && this.#phase === "body") at = this.#readBody(bytes, at);
    // Bytes after an answer do not belong to the next request.
    if (at < bytes.length) this.#hasSurplus = true;
    if (this.#phase === "over") this.#end();
  }

  /** The server has closed the connection. Throws `ProtocolError` if the answer is not complete. */
  close(): void {
    if (this.#phase !== "body" || this.#remaining !== Infinity) {
      throw new ProtocolError("the connection was closed before the answer was complete");
    }
    this.#phase = "over";
    this.#end();
  }

  #end(): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.#chunked = undefined;
    receiver?.onEnd();
  }

  #readHead(bytes: Buffer, start: number): number {
    const taken = this.#head.take(bytes, start);
    if (taken === undefined) return bytes.length;
    const head = readHead(taken.text);
    if (head.status < 200) {
      this.#interim += 1;
      if (head.status === switchingProtocols || this.#interim > mostInterim) {
        throw new ProtocolError(`the answer has an unexpected status ${head.status}`);
      }
      return taken.restAt;
    }
    const { body } = head;
    this.#phase = body === 0 ? "over" : "body";
    if (body === "chunked") this.#chunked = new ChunkedBody();
    else this.#remaining = body === "until-close" ? Infinity : body;
    this.#keepsOpen = head.keepsOpen && body !== "until-close";
    this.#keepAliveSeconds = head.keepAliveSeconds;
    this.#receiver?.onHead(head);
    return taken.restAt;
  }

  #readBody(bytes: Buffer, start: number): number {
    const chunked = this.#chunked;
    if (chunked !== undefined) {
      const { from, to, restAt } = chunked.decode(bytes, start);
      if (to > from) this.#receiver?.onBody(partOf(bytes, from, to));
      if (chunked.isOver) this.#phase = "over";
      return restAt;
    }
    const end = Math.min(bytes.length, start + this.#remaining);
    this.#remaining -= end - start;
    if (this.#remaining === 0) this.#phase = "over";
    this.#receiver?.onBody(partOf(bytes, start, end));
    return end;
  }
}

/** The runtime keeps so few bytes in the memory of objects; a view of them would move them out. */
const mostInner = 1000;

function partOf(bytes: Buffer, start: number, end: number): Uint8Array {
  if (start === 0 && end === bytes.length) return bytes;
  // A buffer's own `slice` is a view, too.
  const isInner = bytes.length <= mostInner;
  return isInner ? Uint8Array.prototype.slice.call(bytes, start, end) : bytes.subarray(start, end);
}
