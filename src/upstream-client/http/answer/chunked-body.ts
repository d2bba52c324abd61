import { carriageReturn, hexadecimalValue, lineFeed, ProtocolError, tab } from "./response-head.ts";

/** 16 TiB: far above any answer, and exact. */
const mostSizeDigits = 11;
/** Limit on the extensions of one chunk. The gateway does not use them. */
const mostExtensionBytes = 1024;
/** Limit on the fields after the last chunk. */
const mostTrailerBytes = 8 * 1024;

type Phase =
  | "size"
  | "extension"
  | "size-feed"
  | "data"
  | "data-return"
  | "data-feed"
  | "trailer-start"
  | "trailer"
  | "trailer-feed"
  | "last-feed"
  | "over";

/**
 * Decodes a chunked body (RFC 9112, section 7.1). Extensions and trailers are skipped. Each piece
 * is decoded in place, so that the bytes of one read stay one piece.
 */
export class ChunkedBody {
  #phase: Phase = "size";
  #size = 0;
  #digits = 0;
  /** Remaining bytes of the chunk. */
  #remaining = 0;
  /** Bytes of the extension or of the trailers so far. */
  #skipped = 0;

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /**
   * Moves the data of `bytes` from `start` on together: `[from, to)`, -1 without data. The bytes
   * after the body begin at `restAt`. Throws `ProtocolError`.
   */
  decode(bytes: Buffer, start: number) {
    let from = -1;
    let to = -1;
    let at = start;
    const end = bytes.length;
    while (at < end && this.#phase !== "over") {
      if (this.#phase !== "data") {
        this.#step(bytes[at] ?? 0);
        at += 1;
        continue;
      }
      const length = Math.min(this.#remaining, end - at);
      if (from === -1) {
        from = at;
        to = at + length;
      } else {
        bytes.copyWithin(to, at, at + length);
        to += length;
      }
      at += length;
      this.#remaining -= length;
      if (this.#remaining === 0) this.#phase = "data-return";
    }
    return { from, to, restAt: at };
  }

  /** Reads a byte that is not data. */
  #step(byte: number): void {
    switch (this.#phase) {
      case "size":
        return this.#readSize(byte);
      case "extension":
        return this.#skipExtension(byte);
      case "size-feed":
        if (byte !== lineFeed) throw badSize();
        this.#remaining = this.#size;
        this.#skipped = 0;
        this.#phase = this.#size === 0 ? "trailer-start" : "data";
        return;
      case "data-return":
        if (byte !== carriageReturn) throw tooLongChunk();
        this.#phase = "data-feed";
        return;
      case "data-feed":
        if (byte !== lineFeed) throw tooLongChunk();
        this.#size = 0;
        this.#digits = 0;
        this.#phase = "size";
        return;
      default:
        return this.#skipTrailer(byte);
    }
  }

  #readSize(byte: number): void {
    const digit = hexadecimalValue(byte);
    if (digit >= 0) {
      this.#digits += 1;
      if (this.#digits > mostSizeDigits) throw badSize();
      this.#size = this.#size * 16 + digit;
      return;
    }
    if (this.#digits === 0) throw badSize();
    if (byte === carriageReturn) this.#phase = "size-feed";
    else if (byte === 0x3b) {
      this.#skipped = 0;
      this.#phase = "extension";
    } else throw badSize();
  }

  #skipExtension(byte: number): void {
    if (byte === carriageReturn) {
      this.#phase = "size-feed";
      return;
    }
    this.#skipped += 1;
    if (!isText(byte) || this.#skipped > mostExtensionBytes) throw badSize();
  }

  #skipTrailer(byte: number): void {
    this.#skipped += 1;
    if (this.#skipped > mostTrailerBytes) throw badTrailer();
    switch (this.#phase) {
      case "trailer-start":
        if (byte === carriageReturn) this.#phase = "last-feed";
        else if (isText(byte)) this.#phase = "trailer";
        else throw badTrailer();
        return;
      case "trailer":
        if (byte === carriageReturn) this.#phase = "trailer-feed";
        else if (!isText(byte)) throw badTrailer();
        return;
      case "trailer-feed":
        if (byte !== lineFeed) throw badTrailer();
        this.#phase = "trailer-start";
        return;
      default:
        if (byte !== lineFeed) throw badTrailer();
        this.#phase = "over";
    }
  }
}

function isText(byte: number): boolean {
  return byte >= 0x20 ? byte !== 0x7f : byte === tab;
}

function badSize(): ProtocolError {
  return new ProtocolError("a chunk of the body has no valid size");
}

function tooLongChunk(): ProtocolError {
  return new ProtocolError("a chunk of the body is not as long as its size says");
}

function badTrailer(): ProtocolError {
  return new ProtocolError("the fields after the body are not valid");
}
