import type { Transform } from "node:stream";
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import { brokenAnswer } from "../domain/errors/upstream-failure.ts";
import { WaitingReader } from "../domain/waiting/flow.ts";
import type { TransportResponse } from "./transport.ts";

/** Size of a piece of output. */
const chunkSize = 64 * 1024;
/** Most bytes of output for one of input. Equal events, compressed together by gzip, reach 170. */
const mostRatio = 250;
/** Short answers may have a higher ratio. */
const freeBytes = 4 * 1024 * 1024;

/**
 * The answer as its server wrote it before it compressed it. Requests ask for no compression, but
 * some servers and proxies compress anyway. An encoding that is not known fails when it is read.
 */
export function decodedResponse(response: TransportResponse): TransportResponse {
  const named = response.headers.get("content-encoding");
  if (named === null) return response;
  const names = named.split(",").map((name) => name.trim().toLowerCase());
  const encoding = names.filter((name) => !plainNames.has(name)).join(", ");
  return encoding === "" ? response : new DecodedResponse(response, encoding);
}

/** Some servers name the character set, or none. */
const plainNames: ReadonlySet<string> = new Set(["", "identity", "none", "utf-8", "utf8"]);

/**
 * Decompresses off the main thread, no further ahead of its reader than a few pieces. The reader's
 * own limits bound what a small body may become, and the ratio what it costs to read it.
 */
class DecodedResponse implements TransportResponse {
  readonly #response: TransportResponse;
  readonly #encoding: string;
  readonly #reader = new WaitingReader();
  /** Made with the first bytes. */
  #decoder: Transform | undefined;
  #error: Error | undefined;
  #isOver = false;
  #wireBytes = 0;
  #decodedBytes = 0;

  constructor(response: TransportResponse, encoding: string) {
    this.#response = response;
    this.#encoding = encoding;
    this.#feed();
  }

  get status(): number {
    return this.#response.status;
  }

  get headers(): TransportResponse["headers"] {
    return this.#response.headers;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  arrived(): undefined {
    return undefined;
  }

  take(): Uint8Array | undefined {
    if (this.#error !== undefined) throw this.#error;
    const piece: unknown = this.#decoder?.read();
    if (!(piece instanceof Uint8Array)) return undefined;
    this.#decodedBytes += piece.byteLength;
    if (this.#decodedBytes > Math.max(freeBytes, this.#wireBytes * mostRatio)) {
      const error = brokenAnswer(`the answer expands to more than ${mostRatio} times its size`);
      this.#fail(error);
      throw error;
    }
    return piece;
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
  }

  /** Hands on what has arrived, until the decoder is full. */
  readonly #feed = (): void => {
    if (this.#error !== undefined) return;
    try {
      for (let piece = this.#response.take(); piece !== undefined; piece = this.#response.take()) {
        const decoder = (this.#decoder ??= this.#newDecoder(piece));
        this.#wireBytes += piece.byteLength;
        // The socket's buffer may be used again.
        if (!decoder.write(Buffer.from(piece))) return void decoder.once("drain", this.#feed);
      }
    } catch (error) {
      return this.#fail(error);
    }
    if (!this.#response.isOver) return this.#response.whenReady(this.#feed);
    if (this.#decoder === undefined) this.#end();
    else this.#decoder.end();
  };

  #newDecoder(first: Uint8Array): Transform {
    const decoder = decoderOf(this.#encoding, first);
    if (decoder === undefined) {
      const name = this.#encoding.slice(0, 50);
      throw brokenAnswer(`the upstream compressed its answer (${name}) without being asked to`);
    }
    decoder.on("readable", this.#reader.wake);
    decoder.on("end", () => this.#end());
    decoder.on("error", (error) => {
      this.#fail(brokenAnswer("the answer could not be decompressed", error));
    });
    return decoder;
  }

  #end(): void {
    this.#isOver = true;
    this.#reader.wake();
  }

  #fail(error: unknown): void {
    this.#error ??= error instanceof Error ? error : new Error(String(error));
    this.#decoder?.destroy();
    this.#reader.wake();
  }
}

function decoderOf(encoding: string, first: Uint8Array): Transform | undefined {
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return createGunzip({ chunkSize });
    case "deflate": {
      // Some servers leave out the wrapper (RFC 9110, section 8.4.1.2), whose method is always 8.
      const hasWrapper = ((first[0] ?? 0) & 0x0f) === 8;
      return hasWrapper ? createInflate({ chunkSize }) : createInflateRaw({ chunkSize });
    }
    case "br":
      return createBrotliDecompress({ chunkSize });
    case "zstd":
      return createZstdDecompress({ chunkSize });
    default:
      return undefined;
  }
}
