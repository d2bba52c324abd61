import type { Clock } from "../../domain/clock.ts";
import type { KeyTotal, KeyTotals } from "../../domain/live-facts.ts";
import type { UsagePoint, UsageReports } from "../../store/usage-reports.ts";

/** Callers may ask as often as their plan has requests: each answer is kept for a moment. */
const keptMs = 5_000;
const mostKept = 10_000;
const dayMs = 86_400_000;

/** Reads what keys have used in the day and in the month, from the sums of days. */
export function createKeyTotals(
  reports: Pick<UsageReports, "series">,
  clock: Clock,
): (keyId: string) => Promise<KeyTotals> {
  const kept = new Map<string, { readonly at: number; readonly totals: Promise<KeyTotals> }>();
  const read = async (keyId: string, now: number): Promise<KeyTotals> => {
    const today = Math.floor(now / dayMs) * dayMs;
    const since = new Date(today).setUTCDate(1);
    const filter = { keyId, since, until: today + dayMs };
    const points = await reports.series({ filter, by: [], step: "day", limit: 1 });
    const ofToday = points.filter(({ at }) => at >= today);
    return { day: sumOf(ofToday, today), month: sumOf(points, since) };
  };
  return (keyId) => {
    const now = clock.now();
    const before = kept.get(keyId);
    if (before !== undefined && now - before.at < keptMs) return before.totals;
    if (kept.size >= mostKept) kept.clear();
    const totals = read(keyId, now);
    kept.set(keyId, { at: now, totals });
    totals.catch(() => kept.delete(keyId));
    return totals;
  };
}

function sumOf(points: readonly UsagePoint[], since: number): KeyTotal {
  const sum = (
    count:
      | "calls"
      | "failedCalls"
      | "inputTokens"
      | "outputTokens"
      | "cachedInputTokens"
      | "unpricedCalls",
  ): number => points.reduce((total, point) => total + point[count], 0);
  const costNano = points.reduce((total, point) => total + (point.costNano ?? 0n), 0n);
  const unpricedCalls = sum("unpricedCalls");
  return {
    since,
    calls: sum("calls"),
    failedCalls: sum("failedCalls"),
    inputTokens: sum("inputTokens"),
    outputTokens: sum("outputTokens"),
    cachedInputTokens: sum("cachedInputTokens"),
    costNano: costNano === 0n && unpricedCalls > 0 ? undefined : costNano,
    unpricedCalls,
  };
}
