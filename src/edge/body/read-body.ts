import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { joinChunks, releaseBytes } from "../../domain/chat/bytes.ts";
import { JsonScan, scanJson, type JsonLimits } from "../../domain/chat/json-scan.ts";
import { nextTurn, oneTurnBytes } from "../../domain/waiting/wait.ts";
import type { MemoryHold, MemoryLimits } from "../../domain/waiting/memory-gate.ts";
import { retryHeaders } from "../../domain/limits/headers.ts";
import { decompress, mostExpandedBytes, type DecompressionLimits } from "./decompress.ts";

export interface BodyLimits extends DecompressionLimits, JsonLimits {
  readonly bodyMemory: MemoryLimits;
  /** As sent on the wire. */
  readonly bodyLimitBytes: number;
  /** For the whole body: an idle timer does not bound a body that trickles in. */
  readonly bodyTimeoutMs: number;
}

export function hasBody({ body, headers }: Request): boolean {
  return body !== null && headers.get("content-length") !== "0";
}

/** Such bodies are not counted and never wait: the number of calls bounds them. */
const smallBytes = oneTurnBytes;

/**
 * Reads a JSON request body as bytes, decompressed and within the limits for parsing. Throws 400,
 * 408, 413, 415 or 503, and the reason of the request's signal when the connection closes.
 */
export async function readBody(
  request: Request,
  limits: BodyLimits,
  hold: MemoryHold,
): Promise<Uint8Array> {
  requireJson(request.headers.get("content-type"));
  const declared = request.headers.get("content-length");
  const length = declared === null ? undefined : Number(declared);
  if (length !== undefined && length > limits.bodyLimitBytes) {
    throw tooLarge(limits.bodyLimitBytes, length);
  }
  const encoding = request.headers.get("content-encoding")?.toLowerCase() ?? "identity";
  const isEncoded = encoding !== "identity";
  const wireBytes = length ?? limits.bodyLimitBytes;
  const mostBytes = isEncoded ? mostBytesOf(wireBytes, limits) : parsedFactor * wireBytes;
  let body: Uint8Array;
  // It goes on in a later turn of the event loop than the one in which the body ended: bytes in the
  // same packet as its end are parsed by the runtime after that turn. A second request, trailers or
  // an empty line make it close the connection, and a call without a reader must not start.
  if (length === undefined || length > smallBytes) {
    body = await readPieces(request, limits, { length, hold, mostBytes });
    await nextTurn();
  } else {
    // The runtime reads a whole body fastest, but does not report progress. Looking at `body` would
    // make a stream of it.
    const whole = request.bytes();
    // A failure is reported below.
    whole.catch(ignore);
    await nextTurn();
    // Most bodies come with their head, and need no deadline.
    if (Bun.peek.status(whole) === "fulfilled") body = await whole;
    else {
      body = await withDeadline(() => whole, request, limits);
      await nextTurn();
    }
  }
  request.signal.throwIfAborted();
  if (isEncoded) return readEncoded({ body, encoding }, limits, hold);
  hold.becomes(parsedFactor * body.byteLength);
  const scanning = scanJson(body, limits);
  hold.takesMore(valueBytes * (typeof scanning === "number" ? scanning : await scanning));
  return body;
}

async function readEncoded(
  sent: { readonly body: Uint8Array; readonly encoding: string },
  limits: BodyLimits,
  hold: MemoryHold,
): Promise<Uint8Array> {
  const scan = new JsonScan(limits);
  const wireBytes = sent.body.byteLength;
  const mostBytes = mostBytesOf(wireBytes, limits);
  hold.becomes(mostBytes);
  let bytes = wireBytes;
  const body = await decompress(sent, limits, (piece) => {
    scan.push(piece);
    bytes += piece.byteLength;
    return bytes > smallBytes ? hold.reserve(mostBytes) : undefined;
  });
  releaseBytes(sent.body);
  hold.becomes(parsedFactor * body.byteLength + valueBytes * scan.cost);
  return body;
}

/** Bytes in memory for one of a body: parsed, and as sent upstream (measured with 8 MiB). */
export const parsedFactor = 2;

/** What values take beside their texts, for a unit of `valueCosts`, measured with plain numbers. */
const valueBytes = 8;

/** For a compressed body: beside its parsed form, or beside what was sent. */
function mostBytesOf(wireBytes: number, limits: BodyLimits): number {
  const expandedBytes = mostExpandedBytes(wireBytes, limits);
  return expandedBytes + Math.max(expandedBytes * (parsedFactor - 1), wireBytes);
}

function ignore(): void {}

function requireJson(contentType: string | null): void {
  if (contentType === "application/json") return;
  const mediaType = contentType?.split(";", 1)[0]?.trim().toLowerCase();
  if (mediaType === "application/json") return;
  const sent = (contentType ?? "").slice(0, 100);
  throw new GatewayError("unsupported_content_type", {
    message:
      `Unsupported content type: '${sent}'. This API method only accepts 'application/json' ` +
      `requests, but you specified the header 'Content-Type: ${sent}'. ` +
      "Please try again with a supported content type.",
    headers: closeConnection,
  });
}

/** Why a body was not read. */
export function bodyMemoryFull(): GatewayError {
  // The unread rest of the body must not be parsed as the next request.
  return memoryFull("requests", closeConnection);
}

export function answerMemoryFull(): GatewayError {
  return memoryFull("answers", {});
}

function memoryFull(what: string, headers: Readonly<Record<string, string>>): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      `The gateway holds as many large ${what} as it can at the moment. ` +
      "Please retry your request, and send fewer large ones at once.",
    headers: { ...retryHeaders(2_000), ...headers },
    explanation: {
      rule: "body_memory_full",
      summary:
        "The bodies and answers of open requests used all that `http.body_memory` or " +
        "`http.body_memory_per_key` allows for longer than `http.body_memory_wait`.",
    },
  });
}

interface Reading {
  readonly length: number | undefined;
  /** Takes memory for the most bytes that the body may need. */
  readonly hold: Pick<MemoryHold, "reserve">;
  readonly mostBytes: number;
}

async function readPieces(
  request: Request,
  limits: BodyLimits,
  { length, hold, mostBytes }: Reading,
): Promise<Uint8Array> {
  const { body } = request;
  if (body === null) return new Uint8Array(0);
  const { bodyLimitBytes: limitBytes } = limits;
  // A second call of `reserve` does nothing.
  if (length !== undefined) await hold.reserve(mostBytes);
  const read = (restartAfter: RestartDeadline): Promise<Uint8Array> =>
    readChunks(body, limitBytes, (size) =>
      size > smallBytes ? restartAfter(hold.reserve(mostBytes)) : undefined,
    );
  return withDeadline(read, request, limits);
}

/** Awaits `onChunk` before it reads on, which holds back the sender. */
async function readChunks(
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
  onChunk: (size: number) => void | Promise<void>,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = body.getReader();
  try {
    for (;;) {
      const { value: chunk } = await reader.read();
      if (chunk === undefined) return joinChunks(chunks, size);
      size += chunk.byteLength;
      if (size > limitBytes) throw tooLarge(limitBytes, size);
      await onChunk(size);
      chunks.push(chunk);
    }
  } finally {
    // The rest of a refused body is read by `Lingering`.
    reader.releaseLock();
  }
}

/** Suspends the deadline during a wait for memory, which is not the sender's fault. */
type RestartDeadline = (wait: void | Promise<void>) => void | Promise<void>;

function withDeadline<Read>(
  read: (restartAfter: RestartDeadline) => Promise<Read>,
  request: Request,
  { bodyTimeoutMs }: Pick<BodyLimits, "bodyTimeoutMs">,
): Promise<Read> {
  return new Promise((resolve, reject) => {
    const start = (): Timer =>
      setTimeout(() => {
        reject(
          new GatewayError("request_timeout", {
            message: `The request body did not arrive within ${bodyTimeoutMs / 1000} s.`,
            headers: closeConnection,
          }),
        );
      }, bodyTimeoutMs);
    let timer = start();
    const restartAfter: RestartDeadline = (wait) => {
      if (wait === undefined) return undefined;
      clearTimeout(timer);
      return wait.then(() => {
        timer = start();
      });
    };
    read(restartAfter)
      .then(resolve, (error: unknown) => {
        reject(error instanceof GatewayError ? error : unreadable(request, error));
      })
      .finally(() => clearTimeout(timer));
  });
}

function unreadable(request: Request, cause: unknown): GatewayError {
  const left = request.signal.aborted ? "The caller left" : "The connection broke";
  return new GatewayError("bad_http_request", {
    message: `${left} before the request body was complete.`,
    headers: closeConnection,
    cause,
  });
}

function tooLarge(limitBytes: number, readBytes: number): GatewayError {
  return new GatewayError("request_too_large", {
    message: `Maximum content size limit (${limitBytes}) exceeded (${readBytes} bytes read)`,
    headers: closeConnection,
  });
}

/** The unread rest of the body must not be parsed as the next request. */
const closeConnection = { connection: "close" } as const;
