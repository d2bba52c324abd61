import type { Peer } from "./compare.ts";

/** Who is right where a peer sends something else, and why. */
export interface Verdict {
  /** Names of requests; default: all. */
  readonly requests?: RegExp;
  /** Default: both. */
  readonly peers?: readonly Peer[];
  readonly places: RegExp;
  /** `both`: the provider takes either, and the answer is the same. */
  readonly right: "sluice" | "peer" | "both";
  readonly why: string;
}

/** The first that fits is taken: those of single requests stand before those of all. */
export const verdicts: readonly Verdict[] = [];
