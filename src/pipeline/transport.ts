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

export const fetchTransport: Transport = (url, request) =>
  fetch(url, {
    ...request,
    // A redirect would carry the credential to wherever the upstream points.
    redirect: "manual",
    // Answers are asked for uncompressed; decompressing whatever comes would invite bombs.
    decompress: false,
    // The watchdog holds the deadlines.
    timeout: false,
  });
