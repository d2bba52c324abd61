import type { PipelineServices } from "../../src/pipeline/services.ts";
import { violate, type World } from "./world.ts";

type Budget = PipelineServices["budget"];

const windowMs = 10_000;

/** Counts the retries that a process allowed itself, by exact time. */
export function auditBudget(inner: Budget, world: World, process: string): Budget {
  const calls = new Map<string, number[]>();
  const retries = new Map<string, number[]>();
  const { retryBudgetPercent, retryFloor } = world.scenario.routing;
  return {
    callBegan(alias) {
      noteIn(calls, alias, world.time.now);
      inner.callBegan(alias);
    },
    tryRetry(alias) {
      const isAllowed = inner.tryRetry(alias);
      if (!isAllowed) return false;
      const { now } = world.time;
      world.grantedRetries.add(process, alias);
      const made = noteIn(retries, alias, now);
      const share = (countSince(calls.get(alias) ?? [], now) * retryBudgetPercent) / 100;
      const most = Math.max(retryFloor, share);
      const count = countSince(made, now);
      if (count > most) {
        violate(world, "retry budget", `${process}: ${count} retries of ${alias}, not ${most}`);
      }
      return true;
    },
  };
}

function noteIn(times: Map<string, number[]>, alias: string, now: number): readonly number[] {
  const known = times.get(alias) ?? [];
  known.push(now);
  times.set(alias, known);
  return known;
}

function countSince(times: readonly number[], now: number): number {
  return times.filter((at) => at > now - windowMs).length;
}
