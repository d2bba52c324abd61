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

/** What a guarantee may use in all of its time, of so much a minute. */
export function guaranteeLimit(perMinute: number, seconds: number): number {
  return Math.floor((perMinute * (guaranteeSlots(seconds) + 1)) / 60);
}

export function slotAt(nowMs: number): number {
  return Math.floor(nowMs / slotMs);
}

/** Milliseconds from now until a slot is no longer counted. */
export function slotLifeMs(slot: number, nowMs: number, counted = countedSlots): number {
  return (slot + counted) * slotMs - nowMs;
}
