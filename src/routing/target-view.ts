/** The state of a target for the calls of one key. */
export interface TargetView {
  /** Set until a probe, or an attempt that began after the due time, is answered. */
  readonly isEjected: boolean;
  /** Remaining ejection; 0 with `isEjected`: it ends at the next answer. */
  readonly ejectedForMs: number;
  /** Reason for the operator; empty if it was never ejected. */
  readonly because: string;
  /** Remaining pause. */
  readonly pausedForMs: number;
  /** In slow start: it takes few attempts at once. */
  readonly isStartingSlowly: boolean;
  /** Whether the target should be probed. */
  readonly needsProbe: boolean;
  /** Of the last ten seconds, from 0 to 1; 0 with too few attempts. */
  readonly failureShare: number;
  /** Moving average of streams; undefined with too few or no recent samples. */
  readonly firstEventMs: number | undefined;
  readonly inFlight: number;
  /** Concurrency limit; Infinity while it shows no overload. */
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
