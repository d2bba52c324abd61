import type { Clock } from "../domain/clock.ts";
import type { RoutingSettings } from "../domain/routing-settings.ts";
import { RecentCount } from "../domain/limits/recent-count.ts";

const countedSeconds = 10;

export interface RetryBudgetOptions {
  readonly clock: Clock;
  readonly settings: () => Pick<RoutingSettings, "retryBudgetPercent" | "retryFloor">;
}

/** Budgets for the attempts of a call after its first one. */
export interface RetryBudgets {
  /** By target: attempts at a target that failed or is known to fail. */
  readonly retries: ExtraAttempts;
  /** By alias: hedges. */
  readonly hedges: ExtraAttempts;
}

export interface ExtraAttempts {
  /** Counts an ordinary attempt, which adds to the budget. */
  began(name: string): void;
  /** Takes one extra attempt; a promise only if another process has the budget. */
  tryTake(name: string): boolean | Promise<boolean>;
}

/**
 * Limits extra attempts to a share of the ordinary ones, so that failing targets are not flooded
 * with retries: within any ten seconds, extras are at most that share, or the floor if greater.
 */
export class RetryBudget implements ExtraAttempts {
  readonly #options: RetryBudgetOptions;
  /** By name of a target or alias; bounded by the configuration. */
  readonly #counts = new Map<string, Counts>();

  constructor(options: RetryBudgetOptions) {
    this.#options = options;
  }

  began(name: string): void {
    this.#countsOf(name).ordinary.add(this.#options.clock.monotonic());
  }

  /** Takes one extra attempt; false when the budget is used up. */
  tryTake(name: string): boolean {
    const nowMs = this.#options.clock.monotonic();
    const { retryBudgetPercent, retryFloor } = this.#options.settings();
    const { ordinary, extra } = this.#countsOf(name);
    const share = (ordinary.sum(nowMs) * retryBudgetPercent) / 100;
    if (extra.sum(nowMs) + 1 > Math.max(retryFloor, share)) return false;
    extra.add(nowMs);
    return true;
  }

  /** Counts an extra attempt that was granted elsewhere. */
  took(name: string): void {
    this.#countsOf(name).extra.add(this.#options.clock.monotonic());
  }

  /** Forgets all other names. */
  retain(names: ReadonlySet<string>): void {
    for (const name of this.#counts.keys()) if (!names.has(name)) this.#counts.delete(name);
  }

  #countsOf(name: string): Counts {
    let counts = this.#counts.get(name);
    if (counts === undefined) {
      counts = {
        ordinary: new RecentCount(countedSeconds),
        // Any ten seconds can reach into an eleventh slot.
        extra: new RecentCount(countedSeconds + 1),
      };
      this.#counts.set(name, counts);
    }
    return counts;
  }
}

interface Counts {
  readonly ordinary: RecentCount;
  readonly extra: RecentCount;
}
