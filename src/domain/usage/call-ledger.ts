import type { OpenedCall, UsageRecord } from "./usage.ts";

/**
 * Where a call's account is kept while it runs and after. None of these waits: when they return,
 * what they were told outlives this process.
 */
export interface CallLedger {
  /** False while there is no place for another call; calls are then refused, not forgotten. */
  readonly hasRoom: boolean;
  /**
   * Before anything is sent to an upstream. Throws when it cannot be written; the call must then
   * not run.
   */
  open(call: OpenedCall): void;
  /** What was delivered so far, for the case that the process does not live to close the call. */
  checkpoint(callId: string, delivered: { readonly outputTokens: number }): void;
  /** Before the caller sees the end of the answer. Never throws: what cannot be written waits. */
  close(record: UsageRecord): void;
}
