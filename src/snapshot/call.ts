import type { CapacityMode } from "../domain/limits/capacity.ts";
import type { Caller } from "../domain/keys/key.ts";
import type { Environment } from "../domain/model.ts";
import type { CountedRequest } from "../domain/limits/limit-scope.ts";
import type { RunningHooks } from "./call-hooks.ts";
import type { Snapshot } from "./snapshot.ts";

/** What a caller says of one call beside its body. */
export interface CallOptions {
  readonly capacity: CapacityMode;
  /** Monotonic milliseconds after which the caller does not care; undefined: it did not say. */
  readonly deadlineAt: number | undefined;
}

export const plainCall: CallOptions = { capacity: "auto", deadlineAt: undefined };

/** One request of a caller on its way. */
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
  readonly options: CallOptions;
  /** Of the request. */
  readonly headers: Pick<Headers, "get">;
  /** Undefined: none follows this call. */
  readonly hooks?: RunningHooks;
  /** Its request, as it was counted when it came; undefined: admission counts it. */
  readonly counted?: CountedRequest | undefined;
}
