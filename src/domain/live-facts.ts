import type { LimitScope, LimitState } from "./limits/limit-scope.ts";
import type { PoolName } from "./limits/capacity.ts";
import type { BudgetScope, PeriodSpend } from "./money/budget.ts";

/** What a gateway process knows at this moment. Health and bounds of its load are its own. */
export interface LiveFacts {
  /** Number of the process among those of its machine, from 1. */
  readonly process: number;
  readonly openCalls: number;
  /** Most calls under way; it falls while the event loop is late. */
  readonly loadBound: number;
  readonly spoolBytes: number;
  readonly spoolLimitBytes: number;
  /** Targets that calls have reached since the start; all others are in service. */
  readonly targets: readonly TargetFacts[];
  readonly gates: readonly GateFacts[];
  /** What its calls under way have reserved, by the ids of a budget and of its period. Absent: nothing. */
  readonly reservedNano?: Readonly<Record<string, number>> | undefined;
  /** Of the keys that were asked for. */
  readonly keys: readonly KeyFacts[];
}

/** Attempts at a target that ended in this hour of the clock or in the one before it. */
export interface EndedAttempts {
  readonly attempts: number;
  /** Which of them failed, by kind of failure. */
  readonly failures: Readonly<Record<string, number>>;
  /** Since the start. */
  readonly lastFailure: { readonly kind: string; readonly at: number } | undefined;
}

export interface TargetFacts {
  readonly id: string;
  /** Set while it is out for all keys; a time that is over ends with the next answer. */
  readonly out: { readonly untilAt: number; readonly because: string } | undefined;
  /** Whether it is out because its provider refuses requests, as by a quota. */
  readonly isThrottled: boolean;
  /** Why calls fail, while none has lived since a key was taken out and it is not out for all. */
  readonly failing: string | undefined;
  /** Keys for which it is out alone. */
  readonly keysOut: number;
  readonly inFlight: number;
  /** Most attempts at once while it is overloaded; undefined: no limit. */
  readonly limit: number | undefined;
  /** Absent: a process of an earlier version, which is being replaced, does not tell. */
  readonly ended?: EndedAttempts;
}

/** A pool or an upstream: how many calls hold a place of it, and how many wait for one. */
export interface GateFacts extends PoolName {
  readonly inFlight: number;
  readonly waiting: number;
  /** Places for all processes together; undefined: no limit. */
  readonly bound: number | undefined;
}

export interface KeyFacts {
  readonly keyId: string;
  readonly accountId: string;
  readonly application: string;
  readonly environment: string;
  /** The plan that sets its limits; undefined: they are its own. */
  readonly plan: string | undefined;
  readonly openCalls: number;
  readonly windows: readonly KeyWindow[];
}

/** What limits a key: its own plan, its account, or what its units guarantee. */
export interface KeyWindow {
  readonly of: "key" | "account" | "guarantee";
  readonly seconds: number;
  /** Of one id, in both units. */
  readonly scopes: readonly LimitScope[];
}

/** Which keys to tell of: those of these secrets, and others that are in use. */
export interface WantedKeys {
  readonly publicIds: readonly string[];
  /** Secrets used lately: with their keys, those with open calls. Undefined: only those above. */
  readonly recent?: readonly string[] | undefined;
  /** Whose keys in use; undefined among them: everybody's, as well as a limited number of each account. */
  readonly accountIds: readonly (string | undefined)[];
}

/** Reads what is left under the scopes of one id each, as all processes that share them count it. */
export type ReadLimits = (
  of: readonly (readonly LimitScope[])[],
) => readonly LimitState[] | Promise<readonly LimitState[]>;

/** What a key uses of its limits now, and what it has used. */
export interface KeyUse {
  readonly windows: readonly (Pick<KeyWindow, "of" | "seconds"> & { readonly state: LimitState })[];
  /** Undefined while the database is unavailable. */
  readonly totals: KeyTotals | undefined;
}

/** The stored calls of a key, in days and months of UTC, and the budgets that its calls are under. */
export interface KeyTotals extends Readonly<Record<"day" | "month", KeyTotal>> {
  readonly budgets: readonly BudgetUse[];
}

/** A budget in its current period, with the stored spend of all calls that are under it. */
export interface BudgetUse extends BudgetScope, PeriodSpend {}

export interface KeyTotal {
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly calls: number;
  readonly failedCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  /** Nano-USD of the calls that have a cost; undefined: there are only others. */
  readonly costNano: bigint | undefined;
  readonly unpricedCalls: number;
}
