import type { CapacityMode } from "../domain/limits/capacity.ts";
import type { Caller } from "../domain/keys/key.ts";
import type { Environment, ModelKind } from "../domain/model.ts";
import type { CountedRequest } from "../domain/limits/limit-scope.ts";
import type { Snapshot } from "./snapshot.ts";

/** Where a dialect has the models of each kind, and the list of all; for messages. */
export type ModelEndpoints = Readonly<Record<ModelKind | "list", string>>;

/** What a caller says of one call beside its body. */
export interface CallOptions {
  readonly capacity: CapacityMode;
  /** Monotonic milliseconds after which the caller does not care; undefined: it did not say. */
  readonly deadlineAt: number | undefined;
}

export const plainCall: CallOptions = { capacity: "auto", deadlineAt: undefined };

/** One request of a caller on its way through the pipeline. */
export interface Call {
  /** Request id; names the reservation and the row of the ledger. */
  readonly id: string;
  readonly caller: Caller;
  readonly environment: Environment;
  readonly snapshot: Snapshot;
  /** Of the route that it came by. */
  readonly dialect: { readonly endpoints: ModelEndpoints };
  /** Fires when the caller leaves. */
  readonly signal: AbortSignal;
  /** Monotonic milliseconds. */
  readonly receivedAt: number;
  readonly options: CallOptions;
  /** Its request, as it was counted when it came; undefined: admission counts it. */
  readonly counted?: CountedRequest | undefined;
}
