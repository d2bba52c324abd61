import type { Caller } from "../domain/key.ts";
import type { Environment } from "../domain/model.ts";
import type { Snapshot } from "./snapshot.ts";

/** One request of a caller on its way through the pipeline. */
export interface Call {
  /** Request id; names the reservation and the row of the ledger. */
  readonly id: string;
  readonly caller: Caller;
  readonly environment: Environment;
  readonly snapshot: Snapshot;
  /** Fires when the caller leaves. */
  readonly signal: AbortSignal;
  /** Monotonic milliseconds. */
  readonly receivedAt: number;
}
