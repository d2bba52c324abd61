import type { LimitDimension } from "../../../domain/limits/limit-state.ts";
import type { Limits } from "../../../domain/limits/plan.ts";
import { impossibleDimension, type Demand } from "../../../domain/limits/slots.ts";
import type { UsageWindow } from "../../../domain/limits/window.ts";
import type { WindowShelf } from "./window-shelf.ts";

/** A scope of a request with its window, which is advanced to the current slot. */
export interface ScopeCharge {
  readonly id: string;
  /** Of all the time that the window counts. */
  readonly limits: Limits;
  /** What is used beyond so many tokens is a debt. */
  readonly heldTo: number;
  /** Where its window is remembered. */
  readonly shelf: WindowShelf;
  readonly window: UsageWindow;
  /** Most that calls under way may use beyond what is charged for them. */
  readonly overrunLimit: number;
  /** New windows are remembered on admission only; a scope named again is charged once. */
  readonly origin: "known" | "new" | "repeated";
}

export function isOverLimit(charges: readonly ScopeCharge[], demand: Demand): boolean {
  for (const { limits, window } of charges) {
    if (window.brokenDimension(limits, demand) !== undefined) return true;
  }
  return false;
}

export function isOverrunning({ window, overrunLimit }: ScopeCharge, overrun: number): boolean {
  return overrun > 0 && window.overrun + overrun > overrunLimit;
}

export function countDistinct(charges: readonly ScopeCharge[]): number {
  return charges.filter(({ origin }) => origin !== "repeated").length;
}

export interface RefusedRequest {
  readonly first: ScopeCharge;
  readonly charges: readonly ScopeCharge[];
  readonly demand: Demand;
  readonly roomWaitMs: number | undefined;
  readonly now: number;
}

interface Refusal {
  readonly scope: ScopeCharge;
  readonly dimension: LimitDimension;
  readonly waitMs: number | undefined;
}

/**
 * Names a scope that can never take the request, else the first that cannot take it now. The wait
 * is the longest of all, so a caller that obeys it is not refused by the next scope.
 */
export function findRefusal({ first, charges, demand, roomWaitMs, now }: RefusedRequest): Refusal {
  let refusal: Refusal | undefined;
  let longestMs = roomWaitMs ?? 0;
  for (const scope of charges) {
    const { limits, window } = scope;
    const dimension = window.brokenDimension(limits, demand);
    if (dimension === undefined) continue;
    const impossible = impossibleDimension(limits, demand);
    if (impossible !== undefined) return { scope, dimension: impossible, waitMs: undefined };
    longestMs = Math.max(longestMs, window.waitMs(limits, demand, now) ?? 0);
    refusal ??= { scope, dimension, waitMs: longestMs };
  }
  const waitMs = roomWaitMs === undefined ? undefined : longestMs;
  return { ...(refusal ?? { scope: first, dimension: "requests" }), waitMs };
}
