import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { Candidate } from "../../routing/candidates.ts";
import type { RequestPlaces, RequestTerms } from "../places/request-places.ts";
import type { UpstreamPlaces } from "../places/upstream-places.ts";
import type { Snapshot, Upstream } from "../../snapshot/snapshot.ts";

/** The key and class of a place. */
export interface PlaceHolder {
  /** `provisioned` only at the pool of the key's units. */
  readonly capacityClass: CapacityClass;
  readonly keyId: string;
}

/** A call's request for a place at the pool of a target. */
export interface PlaceRequest extends PlaceHolder {
  readonly callId: string;
  readonly accountId: string;
  /** The call's reservation. */
  readonly tokens: number;
}

/**
 * The place of a running attempt at the pool, with one at the upstream for each of its requests.
 * Each method that ends it takes effect once.
 */
export interface Place extends Pick<RequestPlaces, "extend" | "tryOpen" | "whenOpen" | "close"> {
  readonly waitedMs: number;
  /** Its position in the queue, from 1, if it waited. */
  readonly position: number | undefined;
  /** Replaces the reservation by the used tokens. */
  settle(tokens: number): void;
  /** Settles to 0 if it was not settled before. */
  leave(): void;
}

/**
 * Why there is no place: all places of the class are taken; the tokens of the minute are used up;
 * the queue is full; the wait timed out; the caller left.
 */
export type BusyReason = "full" | "tokens" | "queue-full" | "deadline" | "left";

export interface BusyPool {
  readonly busy: BusyReason;
  /** When a retry may succeed; `Infinity`: never, at this pool. */
  readonly retryAfterMs: number;
  /** Its position in the queue, from 1, if it waited. */
  readonly position: number | undefined;
  readonly waitedMs: number;
}

export type EnterResult = { readonly place: Place } | BusyPool;

/** The result for a call that did not wait. */
export function busy(reason: BusyReason, retryAfterMs: number): BusyPool {
  return { busy: reason, retryAfterMs, position: undefined, waitedMs: 0 };
}

/** How a call waits for a place. */
export interface PlaceWait extends PlaceRequest {
  readonly snapshot: Snapshot;
  /** Removes the call from the queue at once. */
  readonly signal: AbortSignal;
  readonly waitMs: number;
}

/** How answers of one upstream are drained after their callers have left. */
export interface Draining {
  /** The timeout of one answer. */
  readonly timeoutMs: number;
  /** One is taken for each drained answer; without a free one the answer is aborted. */
  readonly places: Pick<UpstreamPlaces, "tryTake" | "giveBack">;
}

/** Places at the pools of targets and at their upstreams; each upstream has a pool of its own. */
export interface CapacityGate {
  /** Synchronous for targets without a pool. */
  tryEnter(
    candidate: Pick<Candidate, "target" | "upstream">,
    request: PlaceRequest,
    snapshot: Snapshot,
  ): EnterResult | Promise<EnterResult>;
  enter(candidate: Pick<Candidate, "target" | "upstream">, wait: PlaceWait): Promise<EnterResult>;
  /** The places of a request outside any attempt. */
  requestPlaces(upstream: Upstream, terms: RequestTerms): RequestPlaces;
  /** Undefined: a stream whose caller has left is aborted. */
  draining(upstream: Upstream): Draining | undefined;
}
