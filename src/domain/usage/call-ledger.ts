import type { OpenedCall, UsageRecord } from "./usage.ts";

/**
 * Records calls. All records of one turn of the event loop are written together at its end, and
 * survive a kill once the promise has resolved. The calls of a turn share one promise.
 */
export interface CallLedger {
  /** False when there is no room for another call; calls are then refused. */
  readonly hasRoom: boolean;
  /** Awaited before anything is sent to an upstream. After a failure the call must not run. */
  open(call: OpenedCall): Promise<RecordFailure>;
  /** Records the output so far, in case the process dies before the call is closed. */
  checkpoint(callId: string, delivered: { readonly outputTokens: number }): void;
  /** Awaited before the end of the answer is sent; after a failure the write is retried. */
  close(record: UsageRecord): Promise<RecordFailure>;
}

/** Why a record could not be written; undefined: it was written. */
export type RecordFailure = Error | undefined;
