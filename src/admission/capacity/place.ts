import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { Candidate } from "../../routing/candidates.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";

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

/** A place that a call holds while an attempt of it runs. Each of its ends counts once. */
export interface Place {
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

/** Places at the pools of targets; a target without a pool belongs to its upstream's own. */
export interface CapacityGate {
  /** Synchronous for targets without a pool. */
  tryEnter(
    candidate: Pick<Candidate, "target" | "upstream">,
    request: PlaceRequest,
    snapshot: Snapshot,
  ): EnterResult | Promise<EnterResult>;
  enter(candidate: Pick<Candidate, "target" | "upstream">, wait: PlaceWait): Promise<EnterResult>;
}
