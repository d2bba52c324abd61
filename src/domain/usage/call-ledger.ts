import type { OpenedCall, UsageRecord } from "./usage.ts";

/** Records calls. No method waits, and what a method has recorded survives a kill. */
export interface CallLedger {
  /** False when there is no room for another call; calls are then refused. */
  readonly hasRoom: boolean;
  /** Called before anything is sent to an upstream. If it throws, the call must not run. */
  open(call: OpenedCall): void;
  /** Records the output so far, in case the process dies before the call is closed. */
  checkpoint(callId: string, delivered: { readonly outputTokens: number }): void;
  /** Called before the end of the answer is sent. Never throws: a failed write is retried. */
  close(record: UsageRecord): void;
}
