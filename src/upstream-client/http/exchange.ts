import { joinChunks } from "../../domain/chat/bytes.ts";
import type { AnswerHeaders } from "../../upstreams/adapter.ts";
import type { Cancellable, TransportRequest, TransportResponse } from "../transport.ts";
import type { Address, Origin } from "./address.ts";
import { ClientError, writeRequestHead } from "./request-head.ts";
import type { ResponseHead } from "./answer/response-head.ts";
import type { AnswerReceiver } from "./answer/response-reader.ts";

/** A connection that carries an exchange, or a pool where it waits for one. */
export interface Carrier {
  /** Ends the exchange at once. */
  abandon(exchange: Exchange): void;
  /** Stops reading from the server. */
  pause(): void;
  resume(): void;
}

/** Bytes that may wait for a slow reader, beside one read of the runtime (512 KiB). */
const mostWaitingBytes = 32 * 1024;
/** Most bytes taken at once, so that little of a stream is in its frames when its caller is behind. */
const mostTakenBytes = 16 * 1024;

/** One request and its answer. */
export class Exchange implements AnswerReceiver, TransportResponse, Cancellable {
  readonly origin: Origin;
  /** The head of the request, ASCII only. */
  readonly head: string;
  readonly bodyBytes: number;
  status = 0;
  headers: AnswerHeaders = noHeaders;
  /** Whether it may only be sent on a connection that has carried nothing yet. */
  needsNew = false;
  /** Set while it waits for a connection, is sent or is answered. */
  carrier: Carrier | undefined;
  readonly #answer = Promise.withResolvers<TransportResponse>();
  #request: TransportRequest | undefined;
  readonly #memory: TransportRequest["memory"];
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  /** Those of them that were reported as unread. */
  #unreadBytes = 0;
  #onReady: (() => void) | undefined;
  #error: Error | undefined;
  #isComplete = false;
  #isPaused = false;
  #wasTaken = false;

  /** Throws `ClientError` for a request that would not be valid. */
  constructor(request: TransportRequest, address: Address) {
    const { body } = request;
    this.#request = request;
    this.#memory = request.memory;
    this.origin = address.origin;
    this.bodyBytes = typeof body === "string" ? Buffer.byteLength(body) : (body?.byteLength ?? 0);
    this.head = writeRequestHead(request, address, this.bodyBytes);
  }

  /** Resolves when the head has arrived. */
  get answer(): Promise<TransportResponse> {
    return this.#answer.promise;
  }

  /** Undefined once it is no longer needed: it may be large, and a stream is long-lived. */
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
    this.#pieces.push(piece);
    this.#waitingBytes += piece.byteLength;
    this.#callReady();
    if (this.#waitingBytes < mostWaitingBytes || this.#isPaused) return;
    this.#report(this.#waitingBytes);
    this.#isPaused = true;
    this.carrier?.pause();
  }

  onEnd(): void {
    this.#isComplete = true;
    this.#leaveCarrier();
    this.#callReady();
  }

  /** The connection failed, or it was cancelled. What has arrived can still be read. */
  fail(error: Error): void {
    if (this.#isComplete || this.#error !== undefined) return;
    this.#error = error;
    this.#request = undefined;
    this.#leaveCarrier();
    if (this.status === 0) this.#answer.reject(error);
    else this.#callReady();
  }

  cancel(): void {
    const { carrier } = this;
    this.#pieces = [];
    this.#report(0);
    this.fail(new ClientError("Cancelled", this.status === 0 ? "unanswered" : "answering"));
    carrier?.abandon(this);
  }

  arrived(): Uint8Array | undefined {
    if (!this.#isComplete || this.#wasTaken) return undefined;
    this.#wasTaken = true;
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#report(0);
    return joinChunks(pieces, this.#waitingBytes);
  }

  take(): Uint8Array | undefined {
    this.#wasTaken = true;
    const piece = this.#nextPiece();
    if (piece !== undefined) {
      this.#waitingBytes -= piece.byteLength;
      if (this.#waitingBytes === 0) {
        this.#report(0);
        if (this.#isPaused) this.#resume();
      }
      return piece;
    }
    if (this.#error !== undefined) throw this.#error;
    return undefined;
  }

  #nextPiece(): Uint8Array | undefined {
    const [first] = this.#pieces;
    if (first === undefined || first.byteLength <= mostTakenBytes) return this.#pieces.shift();
    this.#pieces[0] = first.subarray(mostTakenBytes);
    return first.subarray(0, mostTakenBytes);
  }

  get isOver(): boolean {
    return this.#isComplete && this.#pieces.length === 0;
  }

  whenReady(call: () => void): void {
    this.#onReady = call;
  }

  #callReady(): void {
    const call = this.#onReady;
    this.#onReady = undefined;
    call?.();
  }

  #report(unreadBytes: number): void {
    const more = unreadBytes - this.#unreadBytes;
    this.#unreadBytes = unreadBytes;
    if (more !== 0) this.#memory?.unread(more);
  }

  #resume(): void {
    this.#isPaused = false;
    this.carrier?.resume();
  }

  #leaveCarrier(): void {
    // The next exchange of the connection must not begin with a paused socket.
    if (this.#isPaused) this.#resume();
    this.carrier = undefined;
  }
}

const noHeaders: AnswerHeaders = { get: () => null };
