import { expect, test } from "bun:test";
import { MemoryLink } from "../../../../test/support/memory-link.ts";
import { virtualClock } from "../../../../test/support/virtual-clock.ts";
import { plainRouting } from "../../../../test/support/pipeline-fixtures.ts";
import { HealthHints } from "../../control/coordination/health-hints.ts";
import { RoutingDesk } from "../../control/coordination/routing-desk.ts";
import { ConcurrencyLimit } from "../../../routing/health/concurrency-limit.ts";
import type { HealthHint } from "../../../routing/health/target-health.ts";
import { RetryBudget } from "../../../routing/retry-budget.ts";
import type { RoutingReport } from "../../link/messages.ts";
import { RoutingReports } from "./routing-reports.ts";
import { SharedRouting } from "./shared-routing.ts";

const settings = { ...plainRouting, retryBudgetPercent: 20, retryFloor: 4 };

/** Control and two workers. */
function start() {
  const { clock, advance: pass } = virtualClock();
  const limits = new Map<string, ConcurrencyLimit>();
  const limitOf = (target: string): ConcurrencyLimit => {
    const limit = limits.get(target) ?? new ConcurrencyLimit();
    limits.set(target, limit);
    return limit;
  };
  const recall = () => undefined;
  const desk = new RoutingDesk({ clock, settings: () => settings, limitOf, recall });
  const hints = new HealthHints();
  const workers = [1, 2].map((number) => {
    const way = new MemoryLink();
    const routing = new SharedRouting({ link: way.link, clock, workers: 2, number });
    const ofHints = hints.ofWorker((hint) => routing.healthChanged(hint));
    way.connect({ ...desk.handlers, ...ofHints.handlers });
    const budget = () => new RetryBudget({ clock, settings: () => routing.shareOf(settings) });
    const budgets = routing.budgets({ retries: budget(), hedges: budget() });
    return { way, routing, budgets, limit: routing.newLimit("t") };
  });
  const [first, second] = workers;
  if (first === undefined || second === undefined) throw new Error("there are two workers");
  return { clock, pass, limitOf, first, second };
}

async function takenOf(tries: number, take: () => boolean | Promise<boolean>): Promise<number> {
  let taken = 0;
  for (let time = 0; time < tries; time += 1) if (await take()) taken += 1;
  return taken;
}

test("workers take extra attempts of one budget, which grows with the attempts of all", async () => {
  const { pass, first, second } = start();
  expect(await takenOf(3, () => first.budgets.retries.tryTake("t", "k"))).toBe(3);
  expect(await takenOf(3, () => second.budgets.retries.tryTake("t", "k"))).toBe(1);
  for (const { budgets } of [first, second]) {
    for (let time = 0; time < 20; time += 1) budgets.retries.began("t");
  }
  expect(await second.budgets.retries.tryTake("t", "k")).toBe(false);
  pass(100);
  expect(await takenOf(9, () => second.budgets.retries.tryTake("t", "k"))).toBe(4);
  expect(await first.budgets.hedges.tryTake("t", "k")).toBe(true);
});

test("without control each has its part of the budget, less what control gave it", async () => {
  const { first, second } = start();
  expect(await first.budgets.retries.tryTake("t", "k")).toBe(true);
  for (const { way } of [first, second]) way.lose();
  expect(await takenOf(5, () => first.budgets.retries.tryTake("t", "k"))).toBe(1);
  expect(await takenOf(5, () => second.budgets.retries.tryTake("t", "k"))).toBe(2);
});

test("control learns the concurrency limit of a target from all workers", () => {
  const { clock, pass, limitOf, first, second } = start();
  const limit = limitOf("t");
  for (let time = 0; time < 30; time += 1) limit.take(`k${time % 3}`);
  for (const worker of [first, second]) {
    for (let time = 0; time < 10; time += 1) worker.limit.succeeded(`k${time % 3}`, 0);
  }
  pass(100);
  expect(limit.limitAt(clock.monotonic())).toBe(Infinity);
  // An overload is reported at once.
  for (const key of ["k0", "k1", "k2"]) {
    for (const worker of [first, second]) {
      worker.limit.overloaded(key, clock.monotonic());
      worker.limit.overloaded(key, clock.monotonic());
    }
  }
  expect(limit.limitAt(clock.monotonic())).toBe(24);
});

test("a report without news is not sent", () => {
  const { clock, advance } = virtualClock();
  const told: RoutingReport[] = [];
  const reports = new RoutingReports({ clock, tell: (report) => void told.push(report) });
  reports.began("retries", "t");
  reports.overloaded("t", "k");
  advance(1_000);
  const began = { retries: [["t", 1] as const], hedges: [] };
  expect(told).toEqual([{ began, answered: [], overloaded: [["t", "k"]] }]);
});

test("what one worker finds out about a target is told to the other, and to no other", () => {
  const { first, second } = start();
  const heard: [number, HealthHint][] = [];
  first.routing.hearHealth((hint) => void heard.push([1, hint]));
  second.routing.hearHealth((hint) => void heard.push([2, hint]));
  const hint = { target: "t", key: "k", ejected: { forMs: 1, times: 1, because: "why" } };
  first.routing.tellHealth(hint);
  expect(heard).toEqual([[2, hint]]);
});
