import type { Refusal } from "../../domain/errors/refusal.ts";
import type { ProcessFacts } from "../../domain/process-status.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { HealthHint } from "../../routing/health/target-health.ts";
import type { Progress } from "../../ledger/spool/spool.ts";
import type {
  AnsweredClaim,
  ClaimAnswer,
  HeldClaim,
  KeyChanges,
  RenewedSecret,
  WantedClaim,
} from "../../store/store.ts";
import type { AdmittedUsage } from "../../store/usage-reports.ts";
import type { LeaseId } from "../../store/coordinator/leases/lease-account.ts";
import type { WireLease, WireRest } from "./lease-wire.ts";
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
  /** When control loaded it, in milliseconds since the epoch. */
  readonly generation: number;
}

/**
 * What a worker reports about itself every second, and at once when it becomes ready or ceases to
 * be.
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

/** What control reports about itself and the worker's spool. */
export interface ControlState {
  /** Undefined when it can serve. */
  readonly notReady: string | undefined;
  /** How far the worker's spool is stored. */
  readonly stored: Progress;
}

/** Sent by workers when several share the limits. */
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
  /** Sent once for each lease, before all other notes about its calls. */
  readonly "limits.returned": { readonly ask: readonly WireRest[] };
  readonly "limits.use": { readonly ask: CallTokens };
  readonly "limits.settle": { readonly ask: CallTokens };
  /** Answered when all notes before it have been handled. */
  readonly "limits.heard": { readonly ask: undefined; readonly answer: void };
};

export type CallTokens = readonly [callId: string, tokens: number];

/** Places of pools, upstreams and targets, which one of several workers asks for. */
export type PlaceMessages = {
  /** Answered when the call has a place, or is refused. */
  readonly "places.enter": { readonly ask: WirePlaceAsk; readonly answer: WireEntered };
  /** How many of the reserved tokens were used. */
  readonly "places.settle": { readonly ask: readonly [id: PlaceId, tokens: number] };
  /** Gives back a place, or ends a wait for one. */
  readonly "places.leave": { readonly ask: WireLeave };
  /** Answered with the number of places given. */
  readonly "places.more": { readonly ask: WireMore; readonly answer: number };
  /** One further request has ended. */
  readonly "places.less": { readonly ask: PlaceId };
};

/** What workers learn about targets, for each other. */
export type RoutingMessages = {
  /** A target was ejected, or returned. */
  readonly "health.changed": { readonly ask: HealthHint };
  readonly "routing.report": { readonly ask: RoutingReport };
  /** Takes one extra attempt. */
  readonly "budget.take": {
    readonly ask: readonly [kind: BudgetKind, name: string, key: string];
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
  /** Attempts that showed an overloaded target. */
  readonly overloaded: readonly (readonly [target: string, key: string])[];
}

/**
 * Who decides about the limits of a worker, as its hello says: the worker itself, or an earlier
 * control process; undefined for a worker that has just begun.
 */
export type LimitsState = "own" | "shared";

/** Sent by the only worker. */
export type HandoverMessages = {
  /**
   * Takes all limits, which the worker decides alone from then on; undefined: there is another
   * worker.
   */
  readonly "limits.take": { readonly ask: undefined; readonly answer: TakenLimits | undefined };
};

/** Sent by workers when there are several, even if only while one replaces another. */
export type CoordinationMessages = LimitMessages &
  PlaceMessages &
  RoutingMessages &
  HandoverMessages;

/** Small messages that calls wait for, sent as JSON. */
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
  readonly "claims.claim": { readonly ask: WantedClaim; readonly answer: ClaimAnswer };
  readonly "claims.confirm": { readonly ask: readonly HeldClaim[]; readonly answer: void };
  readonly "claims.release": { readonly ask: HeldClaim; readonly answer: void };
  readonly "claims.keep": { readonly ask: AnsweredClaim; readonly answer: number };
  readonly "usage.admitted": {
    /** Milliseconds since the epoch. */
    readonly ask: number;
    readonly answer: readonly AdmittedUsage[];
  };
  /** Rows that do not fit into the worker's spool. */
  readonly "usage.insert": { readonly ask: readonly UsageRecord[]; readonly answer: void };
  readonly refused: { readonly ask: Refusal };
  readonly state: { readonly ask: WorkerState };
  /** The last page of metrics of a worker that is ending. */
  readonly leaving: { readonly ask: string };
};

/** What a worker holds of everything that is shared. */
export interface HeldReport {
  readonly limits?: HeldLimits;
  readonly places?: readonly WireHeld[];
}

/** Sent by control when there are several workers, even if only while one replaces another. */
export type SharingMessages = {
  /** The worker is the only one, and may take the limits. */
  readonly "limits.yours": { readonly ask: undefined };
  /** After the answer, the worker decides nothing alone. */
  readonly "coordination.report": { readonly ask: undefined; readonly answer: HeldReport };
  /** What all workers have been granted, as far as this one knows. */
  readonly "limits.seen": { readonly ask: undefined; readonly answer: readonly WireUse[] };
  /** Sent as JSON, before any answer that depends on it. */
  readonly "limits.used": { readonly ask: WireUsed };
  readonly "limits.leased": { readonly ask: WireLease };
  /** Answered once these leases have been returned. */
  readonly "limits.recall": { readonly ask: readonly LeaseId[]; readonly answer: void };
  /** Places of its share that a worker may not give while control is unavailable. */
  readonly "places.lent": { readonly ask: readonly WireLent[] };
  /**
   * Answered once the worker keeps no places there. It may keep them again after `places.plenty`.
   */
  readonly "places.scarce": { readonly ask: readonly WireBound[]; readonly answer: void };
  readonly "places.plenty": { readonly ask: readonly WireBound[] };
};

/** Sent by control. */
export type ControlMessages = SharingMessages & {
  /** This process ends soon, and another control process takes over. */
  readonly replaced: { readonly ask: undefined };
  /**
   * Answered with the epoch of the keys when the worker's calls see every change of keys committed
   * before.
   */
  readonly "keys.reload": { readonly ask: undefined; readonly answer: number };
  /** Sent after each state of the worker. */
  readonly state: { readonly ask: ControlState };
  readonly "config.changed": { readonly ask: ConfigFeed };
  /** What another worker learned about a target. */
  readonly "health.changed": { readonly ask: HealthHint };
  /** The worker's page in the Prometheus text format. */
  readonly "metrics.read": { readonly ask: undefined; readonly answer: string };
};
