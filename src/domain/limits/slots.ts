import type { LimitDimension } from "./limit-state.ts";
import type { Limits } from "./plan.ts";

export const slotMs = 1_000;

/**
 * The slot in progress and the 60 before it. Two admissions at most 60 s apart are always counted
 * together, so no 60 seconds, wherever they begin, hold more than the limit.
 */
export const countedSlots = 61;

/** Longest time that a guarantee may count. */
export const longestGuaranteeSeconds = 3_600;

/** How long what was used may still count, in a guarantee or as a debt. */
export const limitHistoryMs = longestGuaranteeSeconds * slotMs;

/**
 * Slots that a guarantee of so many seconds counts: the one in progress and those before it, one
 * less than it has seconds. What is sent that long apart is then never counted together, wherever
 * in a slot it falls.
 */
export function guaranteeSlots(seconds: number): number {
  return Math.min(Math.max(Math.floor(seconds), 2), longestGuaranteeSeconds) - 1;
}

/** What a guarantee may use in all of its time, its limits being those of a minute. */
export function guaranteeLimits(limits: Limits, seconds: number): Limits {
  const minutes = (guaranteeSlots(seconds) + 1) / 60;
  return {
    requestsPerMinute: Math.floor(limits.requestsPerMinute * minutes),
    tokensPerMinute: Math.floor(limits.tokensPerMinute * minutes),
  };
}

export function slotAt(nowMs: number): number {
  return Math.floor(nowMs / slotMs);
}

/** Milliseconds from now until a slot is no longer counted. */
export function slotLifeMs(slot: number, nowMs: number, counted = countedSlots): number {
  return (slot + counted) * slotMs - nowMs;
}

/** What is asked of a window. */
export interface Demand {
  readonly requests: number;
  readonly tokens: number;
}

/** The limit that a demand breaks even in an empty window, if any. */
export function impossibleDimension(limits: Limits, demand: Demand): LimitDimension | undefined {
  if (demand.tokens > limits.tokensPerMinute) return "tokens";
  return demand.requests > limits.requestsPerMinute ? "requests" : undefined;
}
