import type { RetryBudgets } from "../../src/routing/retry-budget.ts";
import { violate, type World } from "./world.ts";

type Budget = RetryBudgets["retries"];

const windowMs = 10_000;

/** Counts the grants of a process's retry budgets, by exact time. */
export function auditBudgets(inner: RetryBudgets, world: World, process: string): RetryBudgets {
  return {
    retries: auditBudget(inner.retries, world, (name) => {
      world.grantedRetries.add(process);
      return `${process}: retries at ${name}`;
    }),
    hedges: auditBudget(inner.hedges, world, (name) => `${process}: hedges of ${name}`),
  };
}

function auditBudget(inner: Budget, world: World, granted: (name: string) => string): Budget {
  const ordinary = new Map<string, number[]>();
  const extra = new Map<string, number[]>();
  const { retryBudgetPercent, retryFloor } = world.scenario.routing;
  return {
    began(name) {
      noteIn(ordinary, name, world.time.now);
      inner.began(name);
    },
    tryTake(name, key) {
      if (!inner.tryTake(name, key)) return false;
      const { now } = world.time;
      const what = granted(name);
      const made = noteIn(extra, name, now);
      const share = (countSince(ordinary.get(name) ?? [], now) * retryBudgetPercent) / 100;
      const most = Math.max(retryFloor, share);
      const count = countSince(made, now);
      if (count > most) violate(world, "retry budget", `${what}: ${count}, not ${most}`);
      return true;
    },
  };
}

function noteIn(times: Map<string, number[]>, name: string, now: number): readonly number[] {
  const known = times.get(name) ?? [];
  known.push(now);
  times.set(name, known);
  return known;
}

function countSince(times: readonly number[], now: number): number {
  return times.filter((at) => at > now - windowMs).length;
}
