/** What is known of a target now, for the calls of one key. */
export interface TargetView {
  /** Until a probe, or an attempt that began after its due time, was answered. */
  readonly isEjected: boolean;
  /** What is left of the ejection; 0 with `isEjected`: it ends as soon as the target answers. */
  readonly ejectedForMs: number;
  /** In words for the operator; empty if it was never ejected. */
  readonly because: string;
  /** What is left of a pause that the provider's limits ask for. */
  readonly pausedForMs: number;
  /** It came back a moment ago and takes few attempts at once. */
  readonly isStartingSlowly: boolean;
  /** Whether to ask the target, by a request of the gateway's own, if it answers. */
  readonly needsProbe: boolean;
  /** Of the last ten seconds, from 0 to 1; 0 where there are too few attempts to tell. */
  readonly failureShare: number;
  /** A moving average of streams; undefined where too little, or nothing recent, is known. */
  readonly firstEventMs: number | undefined;
  readonly inFlight: number;
  /** Most attempts at once; Infinity while it shows no overload. */
  readonly limit: number;
}

/** A target that was never tried. */
export const unknownTarget: TargetView = {
  isEjected: false,
  ejectedForMs: 0,
  because: "",
  pausedForMs: 0,
  isStartingSlowly: false,
  needsProbe: false,
  failureShare: 0,
  firstEventMs: undefined,
  inFlight: 0,
  limit: Number.POSITIVE_INFINITY,
};
