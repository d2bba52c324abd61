import type { ScopeUse } from "../../../domain/limits/scope-use.ts";
import type { LimitRequest } from "../../store.ts";

/** All that a process knows about the limits, for its successor. */
export interface LimitsState {
  /** The process's monotonic time, in which slots are counted. */
  readonly now: number;
  readonly uses: readonly ScopeUse[];
  /** Calls that were admitted and are not settled. */
  readonly calls: readonly OpenCall[];
}

export interface OpenCall extends Omit<LimitRequest, "counted"> {
  /** The slot in which it was admitted. */
  readonly slot: number;
  /** Tokens charged for it so far. */
  readonly charged: number;
}
