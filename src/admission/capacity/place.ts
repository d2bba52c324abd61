import type { EndSignal } from "../../domain/waiting/end-signal.ts";
import type { Pool } from "../../domain/limits/capacity.ts";
import type { Target } from "../../domain/model.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { RequestTerms, UpstreamPlaces, UpstreamRequests } from "./upstream-places.ts";
import type { Upstream } from "../../snapshot/snapshot.ts";

export interface PlaceHolder {
  /** `provisioned` only at the pool of the key's units. */
  readonly capacityClass: CapacityClass;
  readonly keyId: string;
}

/** What decides the turn of a call, at each of its candidates. */
export interface PlaceRequest {
  readonly callId: string;
  readonly keyId: string;
  readonly accountId: string;
  readonly capacityClass: CapacityClass;
  /** The pool of the key's units. */
  readonly provisionedPool: string | undefined;
  /** The call's reservation. */
  readonly tokens: number;
}

/** A provisioned call counts as spillover outside its own pool. */
export function classAt(
  { capacityClass, provisionedPool }: Pick<PlaceRequest, "capacityClass" | "provisionedPool">,
  pool: string | undefined,
): CapacityClass {
  const isGuest = capacityClass === "provisioned" && pool !== provisionedPool;
  return isGuest ? "spillover" : capacityClass;
}

/** Whether the limits of upstreams apply: not to calls within the guarantees of a pool. */
export function isBound({ capacityClass }: PlaceHolder, pool: string | undefined): boolean {
  return capacityClass !== "provisioned" || pool === undefined;
}

export type UpstreamBounds = Pick<Upstream, "maxInFlight" | "drain">;

export interface ConfiguredPlaces {
  readonly pools: ReadonlyMap<string, Pool>;
  readonly upstreams: ReadonlyMap<string, UpstreamBounds>;
}

export interface PlaceCandidate {
  readonly target: Pick<Target, "id" | "upstream" | "pool">;
}

/** A request for a place at the first of the candidates that has one. */
export interface PlaceAsk {
  readonly request: PlaceRequest;
  readonly candidates: readonly PlaceCandidate[];
  readonly snapshot: ConfiguredPlaces;
  /** Ends the wait at once. */
  readonly signal: EndSignal;
  /** How long the call waits, in the queues of all candidates, if none has a place now. */
  readonly waitMs: number;
}

/** Requests of an attempt at its upstream. */
export type AttemptRequests = Pick<UpstreamRequests, "tryOpen" | "whenOpen" | "close" | "extend">;

/**
 * The place of a running attempt at the pool, with one at the upstream for each of its requests.
 * Each method that ends it takes effect once.
 */
export interface Place extends AttemptRequests {
  readonly waitedMs: number;
  /** Its position in the queue, from 1, if it waited. */
  readonly position: number | undefined;
  /** Replaces the reservation by the used tokens. */
  settle(tokens: number): void;
  /** Settles to 0 if it was not settled before. */
  leave(): void;
}

/**
 * Why there is no place: all places of the class are taken; the target is at its concurrency limit;
 * the tokens of the minute are used up; the queue is full; the wait timed out; the caller left.
 */
export type BusyReason = "full" | "limit" | "tokens" | "queue-full" | "deadline" | "left";

/** How the wait of a call ended. It is counted for the queue that ended it. */
export interface Waited {
  readonly capacityClass: CapacityClass;
  readonly waitedMs: number;
  readonly outcome: "served" | BusyReason;
}

export interface BusyPool {
  readonly busy: BusyReason;
  /** When a retry may succeed; `Infinity`: never, at this pool. */
  readonly retryAfterMs: number;
  /** Its position in the queue, from 1, if it waited. */
  readonly position: number | undefined;
  readonly waitedMs: number;
}

/** The result for a call that did not wait. */
export function busy(reason: BusyReason, retryAfterMs: number): BusyPool {
  return { busy: reason, retryAfterMs, position: undefined, waitedMs: 0 };
}

/**
 * A place and the index of its candidate, with the reasons why earlier candidates gave none; or the
 * reasons why no candidate did. After a wait, only the reason why it ended.
 */
export type EnterResult<Given extends Place = Place> =
  | { readonly place: Given; readonly at: number; readonly refused: readonly BusyPool[] }
  | { readonly refused: readonly BusyPool[] };

/** How answers of one upstream are drained after their callers have left. */
export interface Draining {
  readonly timeoutMs: number;
  /** One is taken for each drained answer; without a free one the answer is aborted. */
  readonly places: Pick<UpstreamPlaces, "tryTake" | "giveBack">;
}

/** Places at the pools of targets and at their upstreams; each upstream has a pool of its own. */
export interface CapacityGate {
  /** A promise only for calls that wait, or if the limit store returns one. */
  enter(ask: PlaceAsk): EnterResult | Promise<EnterResult>;
  /** The places of a request outside any attempt. */
  requestPlaces(upstream: Upstream, terms: RequestTerms): AttemptRequests;
  /** Undefined: a stream whose caller has left is aborted. */
  draining(upstream: Upstream): Draining | undefined;
}
