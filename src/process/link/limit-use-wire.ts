import type { ScopeUse } from "../../domain/limits/scope-use.ts";
import type { WireScope } from "./limit-wire.ts";

/**
 * What windows of limits hold, as JSON. Slots are in the common time of a gateway: that of its first
 * control process, which each later one goes on from, a little late.
 */
export type WireUse = readonly [
  unit: "requests" | "tokens",
  id: string,
  /** Of a guarantee; 0: a minute. */
  seconds: number,
  firstSlot: number,
  amounts: readonly number[],
  /** Absent without a debt. */
  debt?: { readonly tokens: number; readonly limit: number },
];

/** Told to all workers before any of them gets an answer that is based on it. */
export interface WireUsed {
  /** Counts control processes. */
  readonly generation: number;
  /** Counts notes of one control process. */
  readonly sequence: number;
  /** In common time, milliseconds. */
  readonly now: number;
  /** How many workers share what is left while control is gone. */
  readonly workers: number;
  /** Whether these are all windows instead of changed ones. */
  readonly isAll: boolean;
  readonly uses: readonly WireUse[];
}

/** What a worker knows of the limits when control begins to decide for it. */
export interface HeldLimits {
  /** Of the last note that was heard; 0 for a worker that has heard none. */
  readonly generation: number;
  readonly sequence: number;
  /** In common time, milliseconds. */
  readonly now: number;
  /** What it admitted alone. */
  readonly own: readonly WireUse[];
  readonly calls: readonly HeldCall[];
  /** What calls have used, in the order of time; control may know some of it. */
  readonly notes: readonly HeldNote[];
}

/** What a worker goes on with alone. */
export interface TakenLimits {
  /** In the windows, what calls have reserved included. */
  readonly told: WireUsed;
  readonly calls: readonly HeldCall[];
  /** Whether nothing is known of what earlier processes admitted. */
  readonly isUnknown: boolean;
}

/** A call that is not settled. */
export interface HeldCall {
  readonly callId: string;
  readonly scopes: readonly WireScope[];
  readonly tokens: number;
  readonly mostTokens: number;
  /** In which it was admitted; undefined: unknown, so nothing is refunded there. */
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
