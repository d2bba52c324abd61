import type { Clock } from "../../../domain/clock.ts";
import type { RoutingSettings } from "../../../domain/settings.ts";
import type { ConcurrencyLimit } from "../../../routing/health/concurrency-limit.ts";
import { RetryBudget } from "../../../routing/retry-budget.ts";
import type { Handlers } from "../../link/link.ts";
import type { RoutingMessages, RoutingReport } from "../../link/messages.ts";

export interface RoutingDeskOptions {
  readonly clock: Clock;
  readonly settings: () => Pick<RoutingSettings, "retryBudgetPercent" | "retryFloor">;
  readonly limitOf: (targetId: string) => ConcurrencyLimit;
  /** Resolves when workers have given back places of the target that no call uses. */
  readonly recall: (targetId: string) => Promise<void> | undefined;
}

/**
 * What attempts of all workers reveal about targets, and the extra attempts that workers may make.
 */
export class RoutingDesk {
  readonly handlers: Handlers<Pick<RoutingMessages, "routing.report" | "budget.take">> = {
    "routing.report": (report) => this.#learn(report),
    "budget.take": ([kind, name, key]) => this.#budgets[kind].tryTake(name, key),
  };
  readonly #options: RoutingDeskOptions;
  readonly #budgets: { readonly retries: RetryBudget; readonly hedges: RetryBudget };

  constructor(options: RoutingDeskOptions) {
    this.#options = options;
    this.#budgets = { retries: new RetryBudget(options), hedges: new RetryBudget(options) };
  }

  #learn({ began, answered, overloaded }: RoutingReport): void {
    const { clock, limitOf, recall } = this.#options;
    const nowMs = clock.monotonic();
    for (const kind of ["retries", "hedges"] as const) {
      for (const [name, times] of began[kind]) {
        repeat(times, () => this.#budgets[kind].began(name));
      }
    }
    for (const [target, key, times] of answered) {
      const limit = limitOf(target);
      repeat(times, () => limit.succeeded(key, nowMs));
    }
    for (const [target, key] of overloaded) {
      // The limit follows from the number of running requests.
      const learn = (): void => limitOf(target).overloaded(key, clock.monotonic());
      const recalled = recall(target);
      if (recalled === undefined) learn();
      else void recalled.then(learn);
    }
  }
}

function repeat(times: number, run: () => void): void {
  for (let time = 0; time < times; time += 1) run();
}
