import type { Comparison, Figure } from "../figure.ts";
import { summarize } from "../statistics.ts";
import type { Pair } from "./context.ts";

/** The ratios of consecutive measurements, and their median. */
export function ratioOf(pairs: readonly Pair<number>[]): Comparison {
  return { kind: "ratio", value: summarize(pairs.map(({ nginx, sluice }) => sluice / nginx)) };
}

/** The median of each side. */
export function medians(pairs: readonly Pair<number>[]): Pick<Figure, "nginx" | "sluice"> {
  return {
    nginx: summarize(pairs.map(({ nginx }) => nginx)).median,
    sluice: summarize(pairs.map(({ sluice }) => sluice)).median,
  };
}
