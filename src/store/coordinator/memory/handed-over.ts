import type { ScopeUse } from "../../../domain/limits/scope-use.ts";
import type { LimitRequest } from "../../store.ts";

/** All that a process knows about the limits when another one takes over. */
export interface HandedOver {
  readonly uses: readonly ScopeUse[];
  readonly calls: readonly OpenCall[];
}

/** A call that another process has admitted and that is not settled. */
export interface OpenCall extends Omit<LimitRequest, "counted"> {
  /** The slot in which it was admitted. */
  readonly slot: number;
  /** Tokens charged for it so far. */
  readonly charged: number;
}
