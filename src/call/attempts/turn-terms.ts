import type { Candidate } from "../../routing/candidates.ts";

/** Under which an attempt is made that not everybody has to want. */
export interface Terms {
  /** Which candidates come into question. */
  readonly isFit: (candidate: Candidate) => boolean;
  /** Asked after each wait. */
  readonly isWanted: () => boolean;
  /** Asked last, when there is a place. */
  readonly mayBegin: () => boolean;
  /** A retry that a budget has granted already. */
  readonly isPaid: boolean;
  /** A candidate that takes no attempt now may be asked again. */
  readonly keepsTurn: boolean;
}

export const anyTerms: Terms = {
  isFit: () => true,
  isWanted: () => true,
  mayBegin: () => true,
  isPaid: false,
  keepsTurn: false,
};
