const unitsMs: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Reads `0s`, `30m`, `24h` or `7d`; undefined for anything else. */
export function readDurationMs(text: string): number | undefined {
  const [, count, unit] = /^(0|[1-9][0-9]{0,6})([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  return Number(count) * (unitsMs[unit] ?? 0);
}

/** Formats a duration by its two largest units, such as `1 d 4 h` or `28 s`. */
export function formatDuration(durationMs: number): string {
  const seconds = Math.max(Math.round(durationMs / 1000), 0);
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  if (first === -1) return "0 s";
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}
