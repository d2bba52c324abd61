import type { Candidate } from "../../routing/candidates.ts";

/** Conditions of an attempt. */
export interface Terms {
  /** Filters the candidates. */
  readonly isFit: (candidate: Candidate) => boolean;
  /** Checked after each wait. */
  readonly isWanted: () => boolean;
  /** Checked last, once there is a place. */
  readonly mayBegin: () => boolean | Promise<boolean>;
  /** The retry was already taken from a budget. */
  readonly isPaid: boolean;
  /** A candidate that has no room keeps its turn. */
  readonly keepsTurn: boolean;
}

export const anyTerms: Terms = {
  isFit: () => true,
  isWanted: () => true,
  mayBegin: () => true,
  isPaid: false,
  keepsTurn: false,
};
