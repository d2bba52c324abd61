/** The median of several measurements, and their range. */
export interface Summary {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function summarize(values: readonly number[]): Summary {
  const sorted = values.toSorted((left, right) => left - right);
  return { median: quantile(sorted, 0.5), least: sorted[0] ?? NaN, most: sorted.at(-1) ?? NaN };
}

/** The value below which this share of the values lies, interpolated between two. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? NaN;
  const above = sorted[Math.ceil(position)] ?? NaN;
  return below + (above - below) * (position - Math.floor(position));
}
