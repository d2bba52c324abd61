/** A span of the run, its end excluded; milliseconds. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

export function isWithin(spans: readonly Span[], atMs: number): boolean {
  return spans.some(({ fromMs, untilMs }) => atMs >= fromMs && atMs < untilMs);
}

/** Spans without others, each of which lies within one of them. */
export function withoutSpans(spans: readonly Span[], others: readonly Span[]): readonly Span[] {
  return spans.flatMap((span) => {
    const inside = others
      .filter(({ fromMs }) => isWithin([span], fromMs))
      .toSorted((one, other) => one.fromMs - other.fromMs);
    const starts = [span.fromMs, ...inside.map(({ untilMs }) => untilMs)];
    return starts
      .map((fromMs, index) => ({ fromMs, untilMs: inside[index]?.fromMs ?? span.untilMs }))
      .filter(({ fromMs, untilMs }) => fromMs < untilMs);
  });
}

export function secondsIn(spans: readonly Span[]): number {
  return spans.reduce((sum, { fromMs, untilMs }) => sum + untilMs - fromMs, 0) / 1_000;
}
