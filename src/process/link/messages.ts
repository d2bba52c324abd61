import type { Refusal } from "../../domain/errors/refusal.ts";
import type { ProcessFacts } from "../../domain/process-status.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { HealthHint } from "../../routing/health/target-health.ts";
import type { Progress } from "../../ledger/spool/spool.ts";
import type { ClaimDecision, ClaimedRequest, HeldClaim } from "../../store/joins.ts";
import type { KeptReply, KeyChanges, RenewedSecret } from "../../store/store.ts";
import type { AdmittedUsage } from "../../store/usage-reports.ts";
import type { LeaseId, WireLease, WireRest } from "./lease-wire.ts";
import type { HeldLimits, TakenLimits, WireUse, WireUsed } from "./limit-use-wire.ts";
import type {
  WireAcquired,
  WireCountDecision,
  WireCounted,
  WireLimitRequest,
  WireScope,
} from "./limit-wire.ts";

import type {
  PlaceId,
  WireBound,
  WireEntered,
  WireHeld,
  WireLent,
  WireLeave,
  WireMore,
  WirePlaceAsk,
} from "./place-wire.ts";

/** All messages between control and its workers. A message without `answer` is a note. */

/** The text of the configuration in force. Each process parses it with its own environment. */
export interface ConfigFeed {
  /** Path of the file; undefined for the demo. */
  readonly path: string | undefined;
  readonly text: string;
  /** When control took it, in milliseconds since the epoch. */
  readonly generation: number;
}

/**
 * What a worker says of itself every second, and at once when it begins to serve or cannot any more.
 */
export interface WorkerState extends ProcessFacts {
  readonly number: number;
  /** Empty until it listens. */
  readonly url: string;
  /** Undefined when it can serve. */
  readonly notReady: string | undefined;
  /** Path of its spool. */
  readonly spool: string | undefined;
  readonly waitingRows: number;
}

/** What control says of itself, and of the worker's spool. */
export interface ControlState {
  /** Undefined when it can serve. */
  readonly notReady: string | undefined;
  /** How far the worker's spool is stored. */
  readonly stored: Progress;
}

/** Asked by workers where several share the limits. */
export type LimitMessages = {
  readonly "limits.count": {
    readonly ask: readonly WireScope[];
    readonly answer: WireCountDecision;
  };
  readonly "limits.uncount": { readonly ask: WireCounted };
  readonly "limits.acquire": {
    readonly ask: WireLimitRequest;
    readonly answer: WireAcquired;
  };
  /** Sent for each lease, once, and before all other notes of the calls in it. */
  readonly "limits.returned": { readonly ask: readonly WireRest[] };
  readonly "limits.use": { readonly ask: CallTokens };
  readonly "limits.settle": { readonly ask: CallTokens };
  /** Answered when all notes before it were heard. */
  readonly "limits.heard": { readonly ask: undefined; readonly answer: void };
};

export type CallTokens = readonly [callId: string, tokens: number];

/** Which worker makes a call that may be repeated, where there are several. */
export type JoinMessages = {
  /** Answered at once, or when another worker has ended the call. */
  readonly "joins.claim": { readonly ask: ClaimedRequest; readonly answer: ClaimDecision };
  /** Gives a claim back, or ends the wait for it. */
  readonly "joins.release": { readonly ask: string };
  readonly "joins.unsaved": { readonly ask: string };
};

/** Places of pools, upstreams and targets, asked for by workers where there are several. */
export type PlaceMessages = {
  /** Answered when the call has a place, or is refused. */
  readonly "places.enter": { readonly ask: WirePlaceAsk; readonly answer: WireEntered };
  /** The tokens that were used of those that were reserved. */
  readonly "places.settle": { readonly ask: readonly [id: PlaceId, tokens: number] };
  /** Ends a wait too. */
  readonly "places.leave": { readonly ask: WireLeave };
  /** Answered with how many were given. */
  readonly "places.more": { readonly ask: WireMore; readonly answer: number };
  /** One further request has ended. */
  readonly "places.less": { readonly ask: PlaceId };
};

/** What workers find out about targets, for each other. */
export type RoutingMessages = {
  /** A target was ejected, or returned. */
  readonly "health.changed": { readonly ask: HealthHint };
  readonly "routing.report": { readonly ask: RoutingReport };
  /** Takes one extra attempt. */
  readonly "budget.take": {
    readonly ask: readonly [kind: BudgetKind, name: string];
    readonly answer: boolean;
  };
};

/** Retries, by target, or hedges, by alias. */
export type BudgetKind = "retries" | "hedges";

/** Attempts of a worker since its last report. */
export interface RoutingReport {
  /** Ordinary attempts, which add to budgets. */
  readonly began: Readonly<Record<BudgetKind, readonly (readonly [name: string, times: number])[]>>;
  readonly answered: readonly (readonly [target: string, key: string, times: number])[];
  /** Those that showed that the target has too much to do. */
  readonly overloaded: readonly (readonly [target: string, key: string])[];
}

/**
 * Who decides about the limits of a worker, as it says in its hello: itself, or a control process of
 * before; undefined for one that has just begun.
 */
export type LimitsState = "own" | "shared";

/** Asked by the only worker. */
export type HandoverMessages = {
  /** All limits, which the worker decides alone from then on; undefined: another one is there. */
  readonly "limits.take": { readonly ask: undefined; readonly answer: TakenLimits | undefined };
};

/** Asked by workers where there are several, if only while one replaces another. */
export type CoordinationMessages = LimitMessages &
  PlaceMessages &
  RoutingMessages &
  JoinMessages &
  HandoverMessages;

/** Small messages on the way of a call, which are sent as JSON. */
export const jsonKinds: ReadonlySet<string> = new Set<
  keyof CoordinationMessages | keyof SharingMessages
>([
  "limits.leased",
  "limits.recall",
  "limits.count",
  "limits.uncount",
  "limits.acquire",
  "limits.returned",
  "limits.use",
  "limits.settle",
  "limits.heard",
  "joins.claim",
  "joins.release",
  "joins.unsaved",
  "places.enter",
  "places.settle",
  "places.leave",
  "places.more",
  "places.less",
  "health.changed",
  "routing.report",
  "budget.take",
]);

/** Sent by workers. */
export type WorkerMessages = CoordinationMessages & {
  readonly "config.read": { readonly ask: undefined; readonly answer: ConfigFeed };
  readonly "keys.load": {
    readonly ask: { readonly since: number; readonly limit: number };
    readonly answer: KeyChanges;
  };
  /** Times of use by public id, in milliseconds since the epoch. */
  readonly "keys.used": { readonly ask: ReadonlyMap<string, number> };
  readonly "keys.outdated": { readonly ask: RenewedSecret };
  readonly "replies.find": { readonly ask: string; readonly answer: KeptReply | undefined };
  readonly "replies.put": {
    readonly ask: { readonly reply: KeptReply; readonly limitBytes: number };
    readonly answer: number;
  };
  readonly "usage.admitted": {
    /** Milliseconds since the epoch. */
    readonly ask: number;
    readonly answer: readonly AdmittedUsage[];
  };
  /** Rows that the worker's spool cannot take. */
  readonly "usage.insert": { readonly ask: readonly UsageRecord[]; readonly answer: void };
  readonly refused: { readonly ask: Refusal };
  readonly state: { readonly ask: WorkerState };
  /** The last page of metrics of a worker that ends. */
  readonly leaving: { readonly ask: string };
};

/** What a worker holds of what all share. */
export interface HeldReport {
  readonly limits?: HeldLimits;
  readonly places?: readonly WireHeld[];
  readonly joins?: readonly HeldClaim[];
}

/** Sent by control where there are several workers, if only while one replaces another. */
export type SharingMessages = {
  /** The worker is the only one, and may take the limits. */
  readonly "limits.yours": { readonly ask: undefined };
  /** Once answered, the worker decides nothing alone. */
  readonly "coordination.report": { readonly ask: undefined; readonly answer: HeldReport };
  /** What all workers have been granted, as this one has heard. */
  readonly "limits.seen": { readonly ask: undefined; readonly answer: readonly WireUse[] };
  /** In JSON, and before any answer that depends on it. */
  readonly "limits.used": { readonly ask: WireUsed };
  readonly "limits.leased": { readonly ask: WireLease };
  /** Answered once these leases were returned. */
  readonly "limits.recall": { readonly ask: readonly LeaseId[]; readonly answer: void };
  /** Places that a worker may not give of its share while control is gone. */
  readonly "places.lent": { readonly ask: readonly WireLent[] };
  /** Answered once the worker keeps no places there, which it may not before `places.plenty`. */
  readonly "places.scarce": { readonly ask: readonly WireBound[]; readonly answer: void };
  readonly "places.plenty": { readonly ask: readonly WireBound[] };
};

/** Sent by control. */
export type ControlMessages = SharingMessages & {
  /** It ends soon, and another control process takes over. */
  readonly replaced: { readonly ask: undefined };
  /** Answered when calls of the worker see every change of keys that was committed before. */
  readonly "keys.reload": { readonly ask: undefined; readonly answer: void };
  /** Follows each state of the worker. */
  readonly state: { readonly ask: ControlState };
  readonly "config.changed": { readonly ask: ConfigFeed };
  /** What another worker found out about a target. */
  readonly "health.changed": { readonly ask: HealthHint };
  /** The worker's page in the Prometheus text format. */
  readonly "metrics.read": { readonly ask: undefined; readonly answer: string };
};
