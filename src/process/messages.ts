import type { IssuedToken } from "../control/sign-in/bootstrap/bootstrap.ts";
import type { Refusal, RefusalFilter } from "../domain/errors/refusal.ts";
import type { ProcessFacts } from "../control/platform/process-status.ts";
import type { LimitScope, LimitState } from "../domain/limits/limit-scope.ts";
import type { KeyTotals, LiveFacts, WantedKeys } from "../domain/live-facts.ts";
import type { PriceTable } from "../domain/money/price.ts";
import type { SpendNote } from "../domain/money/budget.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import type { PortUse } from "../edge/listen.ts";
import type { Progress } from "../ledger/spool/spool.ts";
import type { MetricFamily } from "../telemetry/metrics/families.ts";
import type {
  AddedResponse,
  AnsweredClaim,
  ClaimAnswer,
  FoundResponse,
  HeldClaim,
  KeyChanges,
  RenewedSecret,
  WantedClaim,
  WantedResponses,
} from "../store/store.ts";

/*
 * Every message between the two threads of a gateway process: the main thread, which serves calls,
 * and the control thread, which has the database. Values are copied. One without `answer` is a note.
 */

/** A configuration as text: each thread parses it, because secrets are not copied. */
export interface ConfigText {
  /** Path of the file; undefined for the demo. */
  readonly path: string | undefined;
  readonly text: string;
  /** Has the settings that only a restart changes, if those of the text are later. */
  readonly startText?: string | undefined;
  /** When the process loaded it, in milliseconds since the epoch. */
  readonly loadedAt: number;
}

/** What the control thread needs to begin. */
export interface ControlStart {
  readonly config: ConfigText;
  /** The arguments of `serve`, whose addresses and data directory precede the file's. */
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Number of this process among those of the machine, from 1. */
  readonly number: number;
  readonly portUse: PortUse;
  /** The process that started this one, whose end ends the gateway. */
  readonly parentPid: number;
}

/** The credentials of the demo, each shown once. */
export interface DemoAccess {
  /** Undefined when there is one already. */
  readonly key: string | undefined;
  /** Signs in once; undefined when the admin listener can be reached from other machines. */
  readonly link: string | undefined;
}

/** What a process knows of itself beside what its control thread knows. */
export interface MainState extends ProcessFacts {
  /** Undefined when it can serve. */
  readonly notReady: string | undefined;
  /** Names the process in the charges of its calls. */
  readonly chargesAs: string | undefined;
}

/** What the control thread reports about storage. */
export interface StorageState {
  /** Why the process cannot serve; undefined when it can. */
  readonly notReady: string | undefined;
  /** How far the spool of this process is stored; undefined while another process stores it. */
  readonly stored: Progress | undefined;
}

/** Sent by the main thread. */
export type ToControl = {
  /** Opens the database. Answered with the peppers, the first digests, or with `StartProblem`. */
  readonly open: { readonly ask: undefined; readonly answer: readonly string[] };
  /**
   * The process serves, and its spool is at this path; undefined while it cannot be written.
   * Answered once the admin listener is open, if it is to be here, or with `StartProblem`.
   */
  readonly serve: { readonly ask: string | undefined; readonly answer: void };
  /** Every second, and at once when the process becomes ready or ceases to be. Shows that it lives. */
  readonly state: { readonly ask: MainState | undefined };
  readonly "keys.load": {
    readonly ask: { readonly since: number; readonly limit: number };
    readonly answer: KeyChanges;
  };
  /** Times of use by public id, in milliseconds since the epoch. */
  readonly "keys.used": { readonly ask: ReadonlyMap<string, number> };
  /** A secret matched under an older pepper. */
  readonly "keys.outdated": { readonly ask: RenewedSecret };
  readonly "claims.claim": { readonly ask: WantedClaim; readonly answer: ClaimAnswer };
  readonly "claims.confirm": { readonly ask: readonly HeldClaim[]; readonly answer: void };
  readonly "claims.release": { readonly ask: HeldClaim; readonly answer: void };
  readonly "claims.keep": { readonly ask: AnsweredClaim; readonly answer: number };
  readonly "responses.put": { readonly ask: AddedResponse; readonly answer: void };
  readonly "responses.find": {
    readonly ask: WantedResponses & { readonly withInput: boolean };
    readonly answer: readonly FoundResponse[];
  };
  readonly "responses.remove": { readonly ask: WantedResponses; readonly answer: boolean };
  /** Rows that do not fit into the spool. */
  readonly "usage.insert": { readonly ask: readonly UsageRecord[]; readonly answer: void };
  /** The totals of the key with this id, up to some seconds old. */
  readonly "usage.of-key": { readonly ask: string; readonly answer: KeyTotals };
  readonly "usage.flush": { readonly ask: undefined; readonly answer: void };
  readonly reload: { readonly ask: undefined };
  readonly "demo.issue-access": { readonly ask: undefined; readonly answer: DemoAccess };
  /** A successor serves: another process may lead. */
  readonly leave: { readonly ask: undefined; readonly answer: void };
  /** The process ends: answered when everything is stored that can be, and closed. */
  readonly stop: { readonly ask: undefined; readonly answer: void };
};

/** Sent by the control thread. */
export type ToMain = {
  readonly storage: { readonly ask: StorageState };
  /** Answered with the epoch when calls see every change of keys committed before. */
  readonly "keys.reload": { readonly ask: undefined; readonly answer: number };
  /** All tables of prices that calls may still need; replaces those that were sent before. */
  readonly prices: { readonly ask: readonly PriceTable[] };
  /** What is spent under budgets: before keys with new budgets, and then each second. */
  readonly spend: { readonly ask: SpendNote };
  readonly "config.changed": { readonly ask: Omit<ConfigText, "path"> };
  /** Undefined while the process starts. */
  readonly "live.read": { readonly ask: WantedKeys; readonly answer: LiveFacts | undefined };
  /** What is left under lists of scopes of one id each. */
  readonly "limits.read": {
    readonly ask: readonly (readonly LimitScope[])[];
    readonly answer: readonly LimitState[];
  };
  readonly "metrics.read": { readonly ask: undefined; readonly answer: readonly MetricFamily[] };
  /** Refusals of calls, for `explain`. */
  readonly refusals: {
    readonly ask: { readonly filter: RefusalFilter; readonly limit: number };
    readonly answer: readonly Refusal[];
  };
  /** `ticketDigest`: of what only the control thread has, with which it calls as a key. */
  readonly leads: { readonly ask: { readonly adminUrl: string; readonly ticketDigest: string } };
  readonly bootstrap: { readonly ask: IssuedToken };
  readonly log: { readonly ask: string };
};
