import type { EndSignal } from "../domain/waiting/end-signal.ts";
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import { type Flow, nextOf } from "../domain/waiting/flow.ts";
import { joinChunks } from "../domain/chat/bytes.ts";
import { answerTooLarge, UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";
import type { AnswerHeaders, UpstreamRequest } from "../upstreams/adapter.ts";
import type { Timeouts } from "../domain/upstream-settings.ts";
import type { AnswerMemory } from "../snapshot/call.ts";
import type { Upstream } from "../snapshot/snapshot.ts";
import { decodedResponse } from "./decoded-response.ts";
import { ClientError } from "./http/request-head.ts";
import type { Transport, TransportRequest, TransportResponse } from "./transport.ts";
import { Watchdog } from "./watchdog.ts";
import { oneTurnBytes, whyEnded } from "../domain/waiting/wait.ts";
import { errorCode } from "../domain/system-files.ts";
import { ProtocolError } from "./http/answer/response-head.ts";

interface SendOptions {
  readonly upstream: Upstream;
  readonly timeouts: Timeouts;
  /** Deadline of the whole call in monotonic milliseconds. */
  readonly endsAt: number;
  readonly clock: Clock;
  readonly transport: Transport;
  readonly callerSignal: EndSignal;
  /** One is opened for the request and closed when its connection ends. */
  readonly places: RequestPlaces;
  readonly memory?: TransportRequest["memory"];
}

/** The places at the upstream that requests of one attempt share. */
export interface RequestPlaces {
  tryOpen(): boolean;
  /** False at the timeout, or once the signal has fired. */
  whenOpen(wait: {
    readonly callerSignal: EndSignal;
    readonly waitMs: number;
    readonly clock: Clock;
  }): Promise<boolean>;
  close(): void;
}

/** How much of an error body is read; error details come first. */
const failureLimitBytes = 64 * 1024;

/**
 * Sends a request and resolves with a 2xx answer whose body has not been read. Throws
 * `UpstreamFailure`, or `GatewayError` `caller_left`.
 */
export async function send(
  request: UpstreamRequest,
  options: SendOptions,
): Promise<UpstreamAnswer> {
  const { upstream, places } = options;
  if (options.callerSignal.aborted) throw whyEnded(options.callerSignal);
  if (!places.tryOpen()) await waitForPlace(options);
  const watchdog = new Watchdog(options);
  try {
    const authorizing = upstream.adapter.authorize(request, watchdog);
    const authorized = authorizing instanceof Promise ? await authorizing : authorizing;
    if (watchdog.isAborted) throw new ClientError("Cancelled", "connecting");
    const { method, headers, body } = authorized;
    const { connections } = upstream;
    const { memory } = options;
    const sending = { method, headers, body, connections, progress: watchdog, memory };
    const response = decodedResponse(await options.transport(authorized.url, sending));
    const sent = { url: authorized.url, headers };
    const answer = new UpstreamAnswer({ response, watchdog, sent }, options);
    const { status } = response;
    if (status < 200 || status > 299) {
      // The reason of a refusal does not take long, unlike an answer.
      watchdog.progress();
      throw await answer.readFailure(authorized);
    }
    return answer;
  } catch (error) {
    watchdog.abort();
    throw explain(error, { watchdog, callerSignal: options.callerSignal });
  }
}

/** Other requests of the attempt hold its places, which become free one by one. */
async function waitForPlace(options: SendOptions): Promise<void> {
  const { places, callerSignal, clock, timeouts, endsAt } = options;
  const waitMs = Math.min(timeouts.firstByteMs, endsAt - clock.monotonic());
  const isOpen = await places.whenOpen({ callerSignal, clock, waitMs });
  if (isOpen && !callerSignal.aborted) return;
  // The caller may disconnect at the moment a place is granted.
  if (isOpen) places.close();
  if (callerSignal.aborted) throw whyEnded(callerSignal);
  const message = "max_in_flight is reached";
  throw new UpstreamFailure({ kind: "overloaded", message, isOwn: true });
}

interface AnswerParts {
  readonly response: TransportResponse;
  readonly watchdog: Watchdog;
  /** Parts of the request that may hold its credential. */
  readonly sent: Pick<UpstreamRequest, "url" | "headers">;
}

/** The body of an answer, read under the deadlines of its attempt. */
export class UpstreamAnswer implements Flow<Uint8Array> {
  readonly #response: TransportResponse;
  readonly #watchdog: Watchdog;
  readonly #sent: AnswerParts["sent"];
  readonly #options: SendOptions;

  constructor({ response, watchdog, sent }: AnswerParts, options: SendOptions) {
    this.#response = response;
    this.#watchdog = watchdog;
    this.#sent = sent;
    this.#options = options;
  }

  get headers(): AnswerHeaders {
    return this.#response.headers;
  }

  /**
   * Adds the provider's request id to a failure that the answer reported, and removes the gateway's
   * credential from it: an upstream may repeat what it was sent.
   */
  explained(failure: UpstreamFailure): UpstreamFailure {
    const { requestIdHeader } = this.#options.upstream.adapter;
    const clean = failure.withoutTexts(credentialTexts(this.#sent));
    return clean.withRequestId(this.headers.get(requestIdHeader));
  }

  /** The failure that an answer of another status reports. */
  async readFailure(authorized: UpstreamRequest): Promise<UpstreamFailure> {
    let body: Uint8Array = new Uint8Array();
    try {
      body = await this.readAll(failureLimitBytes);
    } catch (error) {
      // An unreadable body must not hide the status, which says enough.
      if (error instanceof GatewayError) throw error;
    }
    const { status, headers } = this.#response;
    const { adapter } = this.#options.upstream;
    const details = adapter.readFailure({ status, headers, body }, authorized);
    return this.explained(new UpstreamFailure(details));
  }

  /** The whole body; a promise unless it came with the headers. A long one waits for memory. */
  readAll(
    limitBytes: number,
    memory?: Pick<AnswerMemory, "reserve">,
  ): Uint8Array | Promise<Uint8Array> {
    const arrived = this.#takeArrived(limitBytes);
    if (arrived === undefined) return this.#readAllOfRest(limitBytes, memory);
    const { byteLength } = arrived;
    const waiting = byteLength > oneTurnBytes ? memory?.reserve(byteLength) : undefined;
    return waiting === undefined ? arrived : waiting.then(() => arrived);
  }

  async #readAllOfRest(
    limitBytes: number,
    memory: Pick<AnswerMemory, "reserve"> | undefined,
  ): Promise<Uint8Array> {
    const length = this.headers.get("content-length");
    // The length of a compressed answer says little of what it takes.
    const isPlain = this.headers.get("content-encoding") === null;
    const mostBytes = length === null || !isPlain ? limitBytes : Number(length);
    const pieces: Uint8Array[] = [];
    let size = 0;
    await this.#readRest(limitBytes, (piece) => {
      pieces.push(piece);
      size += piece.byteLength;
      return size > oneTurnBytes ? memory?.reserve(mostBytes) : undefined;
    });
    return joinChunks(pieces, size);
  }

  /**
   * Gives the body, `limitBytes` at most, to `read` piece by piece; a promise unless it came with
   * the headers. `read` may take its time: the upstream waits meanwhile. Closes the connection when
   * `read` throws.
   */
  readPieces(limitBytes: number, read: ReadPiece): void | Promise<void> {
    const arrived = this.#takeArrived(limitBytes);
    if (arrived === undefined) return this.#readRest(limitBytes, read);
    try {
      return read(arrived);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** The whole body, if it came with the headers. */
  #takeArrived(limitBytes: number): Uint8Array | undefined {
    try {
      const declared = Number(this.headers.get("content-length") ?? Number.NaN);
      if (declared > limitBytes) throw answerTooLarge(`more than ${limitBytes} bytes`);
      const arrived = this.#response.arrived();
      if (arrived === undefined) return undefined;
      if (arrived.byteLength > limitBytes) throw answerTooLarge(`more than ${limitBytes} bytes`);
      this.#watchdog.stop();
      return arrived;
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** The next piece of the body; undefined if none has arrived. Throws `UpstreamFailure`. */
  take(): Uint8Array | undefined {
    try {
      const piece = this.#response.take();
      if (piece !== undefined) this.#watchdog.progress();
      else if (this.#response.isOver) this.#watchdog.stop();
      return piece;
    } catch (error) {
      throw this.#fail(error);
    }
  }

  get isOver(): boolean {
    return this.#response.isOver;
  }

  whenReady(call: () => void): void {
    this.#watchdog.awaited();
    this.#response.whenReady(call);
  }

  /** Closes the upstream connection. Safe at any time. */
  cancel(): void {
    this.#watchdog.abort();
  }

  /** Reads the rest of a complete answer, so that the connection can be reused. Deadlines apply. */
  finish(): void {
    const cancelTimeout = this.#options.clock.schedule(() => this.cancel(), drainTimeoutMs);
    let pieces = 0;
    const drain = (): void => {
      try {
        while (this.take() !== undefined) {
          pieces += 1;
          if (pieces >= drainPieces) this.cancel();
        }
      } catch {
        return cancelTimeout();
      }
      if (this.isOver) cancelTimeout();
      else this.whenReady(drain);
    };
    drain();
  }

  /** Once an answer has begun, every failure is a broken answer: the upstream has done the work. */
  #fail(error: unknown): UpstreamFailure | GatewayError {
    const watchdog = this.#watchdog;
    watchdog.abort();
    const { callerSignal } = this.#options;
    return explain(error, { watchdog, callerSignal, hasBegun: true });
  }

  async #readRest(limitBytes: number, read: ReadPiece): Promise<void> {
    let size = 0;
    try {
      for (let piece = await nextOf(this); piece !== undefined; piece = await nextOf(this)) {
        size += piece.byteLength;
        if (size > limitBytes) throw answerTooLarge(`more than ${limitBytes} bytes`);
        const reading = read(piece);
        if (reading !== undefined) await reading;
      }
    } catch (error) {
      throw this.#fail(error);
    }
    this.#watchdog.stop();
  }
}

type ReadPiece = (piece: Uint8Array) => void | Promise<void>;

const drainTimeoutMs = 1_000;
const drainPieces = 16;

interface BrokenAttempt {
  readonly watchdog: Pick<Watchdog, "failure">;
  readonly callerSignal: EndSignal;
  /** Whether the answer had begun. */
  readonly hasBegun?: boolean;
}

/** Tells a disconnected caller, a passed deadline and a network failure apart. */
function explain(
  error: unknown,
  { watchdog, callerSignal, hasBegun = false }: BrokenAttempt,
): UpstreamFailure | GatewayError {
  // A refusal whose body did not come is still one.
  const isRefused = error instanceof UpstreamFailure && error.details.status !== undefined;
  if (isRefused && !callerSignal.aborted) return error;
  if (watchdog.failure !== undefined) return watchdog.failure;
  if (callerSignal.aborted) return whyEnded(callerSignal);
  if (error instanceof UpstreamFailure || error instanceof GatewayError) return error;
  const kind = hasBegun ? "broken-answer" : kindBeforeAnswer(error);
  return new UpstreamFailure({ kind, message: messageOf(error) }, { cause: error });
}

function messageOf(error: unknown): string {
  if (error instanceof ProtocolError) return error.message;
  return `network error ${errorCode(error) ?? "unknown"}`;
}

/** A connection that broke may have carried the request; one that never opened did not. */
function kindBeforeAnswer(error: unknown): UpstreamFailureKind {
  if (error instanceof ProtocolError) return "broken-answer";
  if (!(error instanceof ClientError)) return "connect-failed";
  switch (error.stage) {
    case "connecting":
      return "connect-failed";
    case "unanswered":
      return "connection-lost";
    case "answering":
      return "broken-answer";
  }
}

const plainHeader = /^(?:content-type|accept|accept-encoding|x-amz-date|x-amz-content-sha256)$/i;

/** Values of headers and query, and words in them that look secret: they may be a credential. */
export function credentialTexts({
  url,
  headers,
}: Pick<UpstreamRequest, "url" | "headers">): readonly string[] {
  const texts = new Set<string>();
  for (const value of secretValues(url, headers)) {
    const unprefixed = value.slice(value.indexOf(" ") + 1);
    for (const text of [value, unprefixed]) if (text.length >= 8) texts.add(text);
    // The scope of a signature is no secret: a message may name the region.
    const secret = value.replace(/^(AWS4-HMAC-SHA256 Credential=[^/]+)\S+ .*(?=Signature=)/, "$1 ");
    for (const word of secret.split(/[\s,=/]+/)) if (looksSecret(word)) texts.add(word);
  }
  return [...texts];
}

function* secretValues(url: string, headers: UpstreamRequest["headers"]): Iterable<string> {
  for (const [name, value] of Object.entries(headers)) {
    if (!plainHeader.test(name)) yield value;
  }
  // Some servers take the key as a query parameter.
  const query = url.indexOf("?");
  if (query === -1) return;
  for (const [name, value] of new URLSearchParams(url.slice(query + 1))) {
    if (name !== "api-version") yield value;
  }
}

function looksSecret(word: string): boolean {
  return word.length >= 16 || (word.length >= 8 && /\d/.test(word));
}
