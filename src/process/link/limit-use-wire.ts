import type { ScopeUse } from "../../domain/limits/scope-use.ts";
import type { WireScope } from "./limit-wire.ts";

/**
 * The use in windows of limits, as JSON. Slots are in the common time of a gateway: the clock of
 * its first control process. Each later one continues it, slightly late.
 */
export type WireUse = readonly [
  unit: "requests" | "tokens",
  id: string,
  /** The period of a guarantee; 0: a minute. */
  seconds: number,
  firstSlot: number,
  amounts: readonly number[],
  /** Absent without a debt. */
  debt?: { readonly tokens: number; readonly limit: number },
];

/** Sent to all workers before any of them gets an answer that depends on it. */
export interface WireUsed {
  /** Counts the control processes. */
  readonly generation: number;
  /** Counts the notes of one control process. */
  readonly sequence: number;
  /** In common time, milliseconds. */
  readonly now: number;
  /** How many workers share the rest while control is unavailable. */
  readonly workers: number;
  /** Whether these are all windows or only the changed ones. */
  readonly isAll: boolean;
  readonly uses: readonly WireUse[];
}

/** What a worker knows about the limits when control begins to decide for it. */
export interface HeldLimits {
  /** The generation of the last note that it received; 0: none. */
  readonly generation: number;
  readonly sequence: number;
  /** In common time, milliseconds. */
  readonly now: number;
  /** What it admitted alone. */
  readonly own: readonly WireUse[];
  readonly calls: readonly HeldCall[];
  /** What calls have used, in order of time; control may already know some of it. */
  readonly notes: readonly HeldNote[];
}

/** What a worker needs in order to continue alone. */
export interface TakenLimits {
  /** All windows, including what calls have reserved. */
  readonly told: WireUsed;
  readonly calls: readonly HeldCall[];
  /** Whether it is unknown what earlier processes admitted. */
  readonly isUnknown: boolean;
}

/** A call that is not settled. */
export interface HeldCall {
  readonly callId: string;
  readonly scopes: readonly WireScope[];
  readonly tokens: number;
  readonly mostTokens: number;
  /** The slot in which it was admitted; undefined: unknown, so nothing is refunded there. */
  readonly slot: number | undefined;
  /** Tokens charged for it so far. */
  readonly charged: number;
  /** Whether the worker admitted it alone. */
  readonly isOwn: boolean;
}

export interface HeldNote {
  readonly callId: string;
  readonly tokens: number;
  readonly isFinal: boolean;
}

export function useToWire({ scope, slot, amounts, debt, limit }: ScopeUse): WireUse {
  const { id, unit, seconds } = scope;
  const of = [unit, id, seconds, slot, amounts] as const;
  return debt === 0 ? of : [...of, { tokens: debt, limit }];
}

export function useFromWire([unit, id, seconds, slot, amounts, debt]: WireUse): ScopeUse {
  const { tokens = 0, limit = Number.POSITIVE_INFINITY } = debt ?? {};
  return { scope: { id, unit, seconds }, slot, amounts, debt: tokens, limit };
}
