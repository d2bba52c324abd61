import { joinChunks } from "../../domain/chat/join-chunks.ts";
import type { AnswerHeaders } from "../../upstreams/adapter.ts";
import type { Cancellable, TransportRequest, TransportResponse } from "../transport.ts";
import type { Address, Origin } from "./address.ts";
import { ClientError } from "./client-error.ts";
import { writeRequestHead } from "./request-head.ts";
import type { ResponseHead } from "./answer/response-head.ts";
import type { AnswerReceiver } from "./answer/response-reader.ts";

/** What carries an exchange, or where it waits for a connection. */
export interface Carrier {
  /** Ends the exchange at once. */
  abandon(exchange: Exchange): void;
  /** Stops reading from the server. */
  pause(): void;
  resume(): void;
}

/** Bytes that may wait for a slow reader before the socket is paused. */
const mostWaitingBytes = 128 * 1024;

interface WaitingReader {
  readonly resolve: (piece: Uint8Array | undefined) => void;
  readonly reject: (error: Error) => void;
}

/** One request and its answer. */
export class Exchange implements AnswerReceiver, TransportResponse, Cancellable {
  readonly origin: Origin;
  /** The head of the request, ASCII only. */
  readonly head: string;
  readonly bodyBytes: number;
  status = 0;
  headers: AnswerHeaders = noHeaders;
  /** Set while it waits for a connection, is sent or is answered. */
  carrier: Carrier | undefined;
  readonly #answer = Promise.withResolvers<TransportResponse>();
  #request: TransportRequest | undefined;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  #reader: WaitingReader | undefined;
  #error: Error | undefined;
  #isComplete = false;
  #isPaused = false;
  #wasRead = false;

  /** Throws `ClientError` for a request that would not be valid. */
  constructor(request: TransportRequest, address: Address) {
    const { body } = request;
    this.#request = request;
    this.origin = address.origin;
    this.bodyBytes = typeof body === "string" ? Buffer.byteLength(body) : (body?.byteLength ?? 0);
    this.head = writeRequestHead(request, address, this.bodyBytes);
  }

  /** Resolves when the head has come. */
  get answer(): Promise<TransportResponse> {
    return this.#answer.promise;
  }

  /** Undefined once it is not needed any more: it may be large, and a stream is long-lived. */
  get request(): TransportRequest | undefined {
    return this.#request;
  }

  onHead({ status, headers }: ResponseHead): void {
    this.status = status;
    this.headers = headers;
    this.#request = undefined;
    this.#answer.resolve(this);
  }

  onBody(piece: Uint8Array): void {
    const reader = this.#reader;
    if (reader !== undefined) {
      this.#reader = undefined;
      return reader.resolve(piece);
    }
    this.#pieces.push(piece);
    this.#waitingBytes += piece.byteLength;
    if (this.#waitingBytes < mostWaitingBytes || this.#isPaused) return;
    this.#isPaused = true;
    this.carrier?.pause();
  }

  onEnd(): void {
    this.#isComplete = true;
    this.#leaveCarrier();
    this.#reader?.resolve(undefined);
    this.#reader = undefined;
  }

  /** The connection failed, or the exchange was cancelled. What has come can still be read. */
  fail(error: Error): void {
    if (this.#isComplete || this.#error !== undefined) return;
    this.#error = error;
    this.#request = undefined;
    this.#leaveCarrier();
    if (this.status === 0) return this.#answer.reject(error);
    this.#reader?.reject(error);
    this.#reader = undefined;
  }

  cancel(): void {
    const { carrier } = this;
    this.fail(new ClientError("Cancelled", this.status === 0 ? "unanswered" : "answering"));
    this.#pieces = [];
    carrier?.abandon(this);
  }

  arrived(): Uint8Array | undefined {
    if (!this.#isComplete || this.#wasRead) return undefined;
    this.#wasRead = true;
    const pieces = this.#pieces;
    this.#pieces = [];
    return joinChunks(pieces, this.#waitingBytes);
  }

  read(): Promise<Uint8Array | undefined> | Uint8Array | undefined {
    this.#wasRead = true;
    const piece = this.#pieces.shift();
    if (piece !== undefined) {
      this.#waitingBytes -= piece.byteLength;
      if (this.#isPaused && this.#waitingBytes === 0) this.#resume();
      return piece;
    }
    if (this.#error !== undefined) throw this.#error;
    if (this.#isComplete) return undefined;
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  #resume(): void {
    this.#isPaused = false;
    this.carrier?.resume();
  }

  #leaveCarrier(): void {
    // The next exchange of the connection must not begin with a socket that is not read.
    if (this.#isPaused) this.#resume();
    this.carrier = undefined;
  }
}

const noHeaders: AnswerHeaders = { get: () => null };
