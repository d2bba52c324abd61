import type { Clock } from "../../domain/clock.ts";
import { Calendar } from "../../domain/money/calendar.ts";
import type { ControlStore } from "../../store/repositories/control-store.ts";
import type { BudgetUse, KeyTotal, KeyTotals } from "../../domain/live-facts.ts";
import type { UsagePoint, UsageReports } from "../../store/usage-reports.ts";

/** Callers may ask as often as their plan has requests: each answer is kept for a moment. */
const keptMs = 5_000;
const mostKept = 10_000;
const dayMs = 86_400_000;

interface KeyTotalsStores {
  readonly reports: Pick<UsageReports, "series">;
  readonly control: Pick<ControlStore, "read">;
}

/** Reads what keys have used in the day and in the month, from the sums of days, and their budgets. */
export function createKeyTotals(
  { reports, control }: KeyTotalsStores,
  clock: Clock,
): (keyId: string) => Promise<KeyTotals> {
  const kept = new Map<string, { readonly at: number; readonly totals: Promise<KeyTotals> }>();
  const calendar = new Calendar();
  const readBudgets = (keyId: string, now: number): Promise<readonly BudgetUse[]> =>
    control.read(async ({ keys, budgets }) => {
      const key = await keys.get(keyId);
      const all = key === undefined ? [] : await budgets.ofKey(key);
      const states = await budgets.states(all, now);
      return states.map((state) => ({ ...state, period: calendar.periodAt(state.budget, now) }));
    });
  const read = async (keyId: string, now: number): Promise<KeyTotals> => {
    const today = Math.floor(now / dayMs) * dayMs;
    const since = new Date(today).setUTCDate(1);
    const filter = { keyId, since, until: today + dayMs };
    const points = await reports.series({ filter, by: [], step: "day", limit: 1 });
    const ofToday = points.filter(({ at }) => at >= today);
    const budgets = await readBudgets(keyId, now);
    return { day: sumOf(ofToday, today), month: sumOf(points, since), budgets };
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
