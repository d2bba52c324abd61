import type { Clock } from "../domain/clock.ts";
import type { RoutingSettings } from "../domain/routing-settings.ts";
import { RecentCount } from "../domain/limits/recent-count.ts";

const countedSeconds = 10;

export interface RetryBudgetOptions {
  readonly clock: Clock;
  readonly settings: () => Pick<RoutingSettings, "retryBudgetPercent" | "retryFloor">;
}

/** What calls may ask of targets beyond their first attempts. */
export interface RetryBudgets {
  /** By target: attempts at one that has failed, or is known to fail. */
  readonly retries: Pick<RetryBudget, "began" | "tryTake">;
  /** By alias: second attempts beside one that is slow. */
  readonly hedges: Pick<RetryBudget, "began" | "tryTake">;
}

/**
 * How much may be asked of something beyond what is asked anyway: a share of that, so that what
 * fails is not asked many times as much as what works. At any extra, those of the ten seconds
 * before it are at most that share of what began in them, or the floor where that is more.
 */
export class RetryBudget {
  readonly #options: RetryBudgetOptions;
  /** By name of a target, or of a model; no more than are configured. */
  readonly #counts = new Map<string, Counts>();

  constructor(options: RetryBudgetOptions) {
    this.#options = options;
  }

  /** Something that takes nothing from the budget, and adds to it. */
  began(name: string): void {
    this.#countsOf(name).ordinary.add(this.#options.clock.monotonic());
  }

  /** Takes one extra; false when there is none. */
  tryTake(name: string): boolean {
    const nowMs = this.#options.clock.monotonic();
    const { retryBudgetPercent, retryFloor } = this.#options.settings();
    const { ordinary, extra } = this.#countsOf(name);
    const share = (ordinary.sum(nowMs) * retryBudgetPercent) / 100;
    if (extra.sum(nowMs) + 1 > Math.max(retryFloor, share)) return false;
    extra.add(nowMs);
    return true;
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
        // Ten seconds that begin within a second reach into an eleventh.
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
