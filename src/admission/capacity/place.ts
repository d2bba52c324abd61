import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { Candidate } from "../../routing/candidates.ts";
import type { RequestPlaces, RequestTerms } from "../places/request-places.ts";
import type { UpstreamPlaces } from "../places/upstream-places.ts";
import type { Snapshot, Upstream } from "../../snapshot/snapshot.ts";

/** For whom a place is. */
export interface PlaceHolder {
  /** `provisioned` only at the pool whose units the key has: elsewhere it is a guest. */
  readonly capacityClass: CapacityClass;
  readonly keyId: string;
}

/** What a call wants of the pool of a target. */
export interface PlaceRequest extends PlaceHolder {
  readonly callId: string;
  readonly accountId: string;
  /** Reserved for the call. */
  readonly tokens: number;
}

/**
 * What a call holds while an attempt of it runs: a place at the pool, and at the upstream one for
 * each of its requests. Each of its ends counts once.
 */
export interface Place extends Pick<RequestPlaces, "extend" | "tryOpen" | "whenOpen" | "close"> {
  readonly waitedMs: number;
  /** In the queue, from 1, when it had to wait. */
  readonly position: number | undefined;
  /** Replaces the reservation by what was used. */
  settle(tokens: number): void;
  /** What was not settled by then has used nothing. */
  leave(): void;
}

/**
 * Why there is no place: all are taken, those of the class or all; the tokens of the minute are
 * used up; too many wait already; the time to wait is over; the caller left.
 */
export type BusyReason = "full" | "tokens" | "queue-full" | "deadline" | "left";

export interface BusyPool {
  readonly busy: BusyReason;
  /** When another try may do better; `Infinity`: never, at this pool. */
  readonly retryAfterMs: number;
  /** In the queue, from 1, when it waited. */
  readonly position: number | undefined;
  readonly waitedMs: number;
}

export type EnterResult = { readonly place: Place } | BusyPool;

/** Of one that did not wait. */
export function busy(reason: BusyReason, retryAfterMs: number): BusyPool {
  return { busy: reason, retryAfterMs, position: undefined, waitedMs: 0 };
}

/** How a call waits for a place. */
export interface PlaceWait extends PlaceRequest {
  readonly snapshot: Snapshot;
  /** Takes the call out of the queue at once. */
  readonly signal: AbortSignal;
  readonly patienceMs: number;
}

/** Answers of one upstream that are read on after their callers have left. */
export interface Draining {
  /** For one answer. */
  readonly timeoutMs: number;
  /** Taken while one is read on; without a free one it is aborted. */
  readonly places: Pick<UpstreamPlaces, "tryTake" | "giveBack">;
}

/** Places at the pools of targets, and at their upstreams; a target without a pool belongs to its upstream's own. */
export interface CapacityGate {
  /** Synchronous for targets without a pool. */
  tryEnter(
    candidate: Pick<Candidate, "target" | "upstream">,
    request: PlaceRequest,
    snapshot: Snapshot,
  ): EnterResult | Promise<EnterResult>;
  enter(candidate: Pick<Candidate, "target" | "upstream">, wait: PlaceWait): Promise<EnterResult>;
  /** Of a request that is part of no attempt. */
  requestPlaces(upstream: Upstream, terms: RequestTerms): RequestPlaces;
  /** Undefined: a stream whose caller has left is aborted. */
  draining(upstream: Upstream): Draining | undefined;
}
