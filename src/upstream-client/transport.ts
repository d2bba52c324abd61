import type { ConnectionSettings, Timeouts } from "../domain/upstream-settings.ts";
import type { Flow } from "../domain/waiting/flow.ts";
import type { AnswerHeaders } from "../upstreams/adapter.ts";
import type { Destination } from "../routing/candidates.ts";

/**
 * Sends one request to an upstream; resolves when the head of its answer has arrived. This is the
 * HTTP client, unless a simulation provides its own network. Rejects with `ClientError` or
 * `ProtocolError`.
 */
export type Transport = (url: string, request: TransportRequest) => Promise<TransportResponse>;

export interface TransportRequest {
  readonly method: string;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
  readonly connections: ConnectionSettings;
  /** Notified of the progress of the request. */
  readonly progress: RequestProgress;
  /** Told when more bytes of the answer wait for their reader, or fewer. */
  readonly memory?: { unread(bytes: number): void } | undefined;
}

export interface RequestProgress {
  /** Called once, before anything is sent. */
  started(request: Cancellable): void;
  /** A connection is being opened for the request. */
  connecting(): void;
  /** The host has accepted a connection for it. */
  connected(): void;
}

export interface Cancellable {
  /** Closes the connection at once, unless the answer is complete. Safe at any time. */
  cancel(): void;
}

/** An answer, whose body is taken in pieces as they arrive. */
export interface TransportResponse extends Flow<Uint8Array> {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** The whole body, if all of it has arrived and nothing was taken. */
  arrived(): Uint8Array | undefined;
}

/** Of a whole answer, which comes when the model has written all of it: no first-byte time. */
export function wholeTimeouts(timeouts: Timeouts): Timeouts {
  return { ...timeouts, firstByteMs: Number.POSITIVE_INFINITY };
}

/** Timeouts of the upstream, overridden by those of the model. */
export function timeoutsOf({ model, upstream }: Pick<Destination, "model" | "upstream">): Timeouts {
  const own = model.timeouts;
  const { timeouts } = upstream;
  if (own === undefined) return timeouts;
  return {
    connectMs: timeouts.connectMs,
    firstByteMs: own.firstByteMs ?? timeouts.firstByteMs,
    idleMs: own.idleMs ?? timeouts.idleMs,
    totalMs: own.totalMs ?? timeouts.totalMs,
  };
}
