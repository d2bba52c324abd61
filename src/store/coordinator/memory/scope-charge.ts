import type { WindowSlot } from "../../../domain/errors/refusal.ts";
import type { LimitScope, LimitUnit } from "../../../domain/limits/limit-scope.ts";
import type { LimitState } from "../../../domain/limits/limit-state.ts";
import { slotMs } from "../../../domain/limits/slots.ts";
import type { UsageWindow } from "../../../domain/limits/window.ts";
import type { WindowShelf } from "./window-shelf.ts";

/** A scope of a request with its window, which is advanced to the current slot. */
export interface ScopeWindow {
  readonly scope: LimitScope;
  readonly window: UsageWindow;
}

/** How a store may charge it. */
export interface ScopeCharge extends ScopeWindow {
  /** The shelf of the window. */
  readonly shelf: WindowShelf;
  /** New windows are kept on admission only; a repeated scope is charged once. */
  readonly origin: "known" | "new" | "repeated";
}

export function firstOf(charges: readonly ScopeWindow[]): ScopeWindow {
  const [first] = charges;
  if (first === undefined) throw new RangeError("a limit request names at least one scope");
  return first;
}

/** How much of each unit a request needs. */
export type Demand = Readonly<Record<LimitUnit, number>>;

/** The limit beyond which use is a debt. */
export function heldTo({ isShared = false, limit }: LimitScope): number {
  return isShared ? Number.POSITIVE_INFINITY : limit;
}

export function overrunLimit({ limit, overrunFactor = Infinity, unit }: LimitScope): number {
  return unit === "requests" ? Infinity : limit * overrunFactor;
}

export function isOverLimit(charges: readonly ScopeWindow[], demand: Demand): boolean {
  for (const charge of charges) if (isBroken(charge, demand)) return true;
  return false;
}

/** A request that is already counted is under no limit of requests. */
export function isBroken({ scope, window }: ScopeWindow, demand: Demand): boolean {
  const { unit, limit } = scope;
  if (unit === "requests" && demand.requests === 0) return false;
  return window.isOver(limit, demand[unit]);
}

export interface RefusedRequest {
  readonly first: ScopeWindow;
  readonly charges: readonly ScopeWindow[];
  readonly demand: Demand;
  readonly roomWaitMs: number | undefined;
  readonly now: number;
}

interface Refusal {
  readonly refusing: ScopeWindow;
  readonly waitMs: number | undefined;
}

/**
 * Returns a scope that can never take the request, else the first that cannot take it now, with the
 * longest wait of all, so that a caller that obeys it is not refused by the next scope.
 */
export function findRefusal({ first, charges, demand, roomWaitMs, now }: RefusedRequest): Refusal {
  let refusing: ScopeWindow | undefined;
  let longestMs = roomWaitMs ?? 0;
  for (const charge of charges) {
    if (!isBroken(charge, demand)) continue;
    const { limit, unit } = charge.scope;
    const waitMs = charge.window.waitMs(limit, demand[unit], now);
    if (waitMs === undefined) return { refusing: charge, waitMs };
    longestMs = Math.max(longestMs, waitMs);
    refusing ??= charge;
  }
  return {
    refusing: refusing ?? first,
    waitMs: roomWaitMs === undefined ? undefined : longestMs,
  };
}

/** The state of a scope's id in both units. */
export function stateOf(of: ScopeWindow, charges: readonly ScopeWindow[], now: number): LimitState {
  const requests = siblingOf(of, charges, "requests");
  const tokens = siblingOf(of, charges, "tokens");
  const limitRequests = requests?.scope.limit ?? Infinity;
  const limitTokens = tokens?.scope.limit ?? Infinity;
  return {
    limitRequests,
    limitTokens,
    remainingRequests: requests?.window.remaining(limitRequests) ?? Infinity,
    remainingTokens: tokens?.window.remaining(limitTokens) ?? Infinity,
    resetRequestsMs: requests?.window.resetMs(now) ?? 0,
    resetTokensMs: tokens?.window.resetMs(now) ?? 0,
  };
}

/** The slots of an id's windows, oldest first, without empty ones. */
export function slotsOf(
  of: ScopeWindow,
  charges: readonly ScopeWindow[],
  now: number,
): readonly WindowSlot[] {
  const ofRequests = siblingOf(of, charges, "requests")?.window;
  const ofTokens = siblingOf(of, charges, "tokens")?.window;
  const held: WindowSlot[] = [];
  for (let slot = of.window.oldest; slot <= of.window.newest; slot++) {
    const requests = ofRequests?.at(slot) ?? 0;
    const tokens = ofTokens?.at(slot) ?? 0;
    const ageMs = Math.floor(now - slot * slotMs);
    if (requests > 0 || tokens > 0) held.push({ ageMs, requests, tokens });
  }
  return held;
}

/** The scope of the same id and sort of window for a unit; undefined: none is among the charges. */
export function siblingOf(
  charge: ScopeWindow,
  charges: readonly ScopeWindow[],
  unit: LimitUnit,
): ScopeWindow | undefined {
  const { id, window } = charge.scope;
  if (charge.scope.unit === unit) return charge;
  for (const other of charges) {
    const { scope } = other;
    if (scope.unit !== unit || scope.id !== id) continue;
    if ((scope.window === "minute") === (window === "minute")) return other;
  }
  return undefined;
}
