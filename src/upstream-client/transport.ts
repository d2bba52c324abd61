import { estimateShallowMemoryUsageOf } from "bun:jsc";
import { nextTurn, oneTurnBytes } from "../domain/waiting/next-turn.ts";

/** Sends one request to an upstream. `fetch`, unless a simulation puts its own network here. */
export type Transport = (url: string, request: TransportRequest) => Promise<TransportResponse>;

export interface TransportRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  /** Ends the request, and the reading of its answer. */
  readonly signal: AbortSignal;
}

/** The part of a `Response` that is used. */
export interface TransportResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: Headers;
  readonly body: { getReader(): TransportReader } | null;
  /** The whole body, as fast as it can be read. */
  bytes(): Promise<Uint8Array>;
}

export interface TransportReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
}

export const fetchTransport: Transport = (url, request) => {
  // Writing a large request took its time, and so will handing it to the runtime.
  const isLarge = (request.body?.length ?? 0) > oneTurnBytes;
  return isLarge ? nextTurn().then(() => fetchOnce(url, request)) : fetchOnce(url, request);
};

function fetchOnce(url: string, request: TransportRequest): Promise<Response> {
  return fetch(url, {
    ...request,
    // A redirect would carry the credential to wherever the upstream points.
    redirect: "manual",
    // Answers are asked for uncompressed; decompressing whatever comes would invite bombs.
    decompress: false,
    // The watchdog holds the deadlines.
    timeout: false,
  });
}

/** What the runtime counts for a response that holds no body (Bun 1.4), but for its address. */
const emptyResponseBytes = 360;

/**
 * Whether a body of this length has come in full: `bytes` then returns it at once, and costs less
 * than a reader. The runtime does not say so, but it counts the bytes that a response holds, and
 * holds none of a body that is still on its way. A wrong "no" costs a few microseconds.
 */
export function hasArrived(response: TransportResponse, bodyBytes: number): boolean {
  return estimateShallowMemoryUsageOf(response) >= emptyResponseBytes + bodyBytes;
}
