import { estimateShallowMemoryUsageOf } from "bun:jsc";
import { nextTurn, oneTurnBytes } from "../domain/waiting/next-turn.ts";

/** Sends one request to an upstream. `fetch`, unless a simulation puts its own network here. */
export type Transport = (url: string, request: TransportRequest) => Promise<TransportResponse>;

export interface TransportRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  /** Aborts the request and the reading of its answer. */
  readonly signal: AbortSignal;
}

/** The part of `Response` that the gateway uses. */
export interface TransportResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: Headers;
  readonly body: { getReader(): TransportReader } | null;
  /** Reads the whole body at once. */
  bytes(): Promise<Uint8Array>;
}

export interface TransportReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
}

export const fetchTransport: Transport = (url, request) => {
  // Yields after the write of a large body: handing it to the runtime takes just as long.
  const isLarge = (request.body?.length ?? 0) > oneTurnBytes;
  return isLarge ? nextTurn().then(() => fetchOnce(url, request)) : fetchOnce(url, request);
};

function fetchOnce(url: string, request: TransportRequest): Promise<Response> {
  return fetch(url, {
    ...request,
    // A redirect would carry the credential to any host the upstream names.
    redirect: "manual",
    // No compression was requested; decompressing an answer anyway would invite bombs.
    decompress: false,
    // The watchdog enforces the deadlines.
    timeout: false,
  });
}

/** Size the runtime reports for a response without a body (Bun 1.4), URL excluded. */
const emptyResponseBytes = 360;

/**
 * Whether a body of this length has arrived in full: `bytes` then returns at once and is cheaper
 * than a reader. The runtime has no call for this, but the size it reports for a response includes
 * a complete body and nothing of a partial one. A wrong "no" costs a few microseconds.
 */
export function hasArrived(response: TransportResponse, bodyBytes: number): boolean {
  return estimateShallowMemoryUsageOf(response) >= emptyResponseBytes + bodyBytes;
}
