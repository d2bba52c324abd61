export const slotMs = 1_000;

/**
 * The current slot and the 60 before it. Two admissions at most 60 s apart are always counted
 * together, so no period of 60 seconds exceeds the limit.
 */
export const countedSlots = 61;

/** Longest period of a guarantee. */
export const longestGuaranteeSeconds = 3_600;

/** How long use may count, in a guarantee or as a debt. */
export const limitHistoryMs = longestGuaranteeSeconds * slotMs;

/**
 * The number of slots of a guarantee of this many seconds, including the current one: one less than
 * the seconds, so that requests that far apart are never counted together.
 */
export function guaranteeSlots(seconds: number): number {
  return Math.min(Math.max(Math.floor(seconds), 2), longestGuaranteeSeconds) - 1;
}

/** The limit of a guarantee for its whole period. */
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
