import type { Refusal } from "../../domain/errors/refusal.ts";
import type { ProcessFacts } from "../../domain/process-status.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { Progress } from "../../ledger/spool/spool.ts";
import type {
  AnsweredClaim,
  ClaimAnswer,
  HeldClaim,
  KeyChanges,
  RenewedSecret,
  WantedClaim,
} from "../../store/store.ts";

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

/** Sent by workers. */
export type WorkerMessages = {
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
  /** Rows that do not fit into the worker's spool. */
  readonly "usage.insert": { readonly ask: readonly UsageRecord[]; readonly answer: void };
  readonly refused: { readonly ask: Refusal };
  readonly state: { readonly ask: WorkerState };
  /** The last page of metrics of a worker that is ending. */
  readonly leaving: { readonly ask: string };
};

/** Sent by control. */
export type ControlMessages = {
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
  /** The worker's page in the Prometheus text format. */
  readonly "metrics.read": { readonly ask: undefined; readonly answer: string };
};
