/** What is known of a target now. */
export interface TargetView {
  /** Until an attempt that began after the time of the ejection was answered. */
  readonly isEjected: boolean;
  /** What is left of the ejection; 0 with `isEjected`: half open, one call at a time tries it. */
  readonly ejectedForMs: number;
  /** Half open, and that one call is under way. */
  readonly isProbing: boolean;
  /** The provider asked for it. */
  readonly pausedForMs: number;
  /** Of the last ten seconds, from 0 to 1; 0 where there are too few attempts to tell. */
  readonly failureShare: number;
  /** A moving average; undefined where too little, or nothing recent, is known. */
  readonly firstEventMs: number | undefined;
  readonly inFlight: number;
  /** Most attempts at once; Infinity while it shows no trouble. */
  readonly limit: number;
}

/** A target that was never tried. */
export const unknownTarget: TargetView = {
  isEjected: false,
  ejectedForMs: 0,
  isProbing: false,
  pausedForMs: 0,
  failureShare: 0,
  firstEventMs: undefined,
  inFlight: 0,
  limit: Number.POSITIVE_INFINITY,
};
