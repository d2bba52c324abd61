import type { Clock } from "../domain/clock.ts";
import type { RoutingSettings } from "../domain/settings.ts";
import { keepIn, RecentCount } from "./health/keyed-share.ts";

const countedSeconds = 10;

export interface RetryBudgetOptions {
  readonly clock: Clock;
  readonly settings: () => Pick<RoutingSettings, "retryBudgetPercent" | "retryFloor">;
}

/** Budgets for the attempts of a call after its first one. */
export interface RetryBudgets {
  /** By target: attempts at a target that failed or is known to fail. */
  readonly retries: Pick<RetryBudget, "began" | "tryTake">;
  /** By alias: hedges. */
  readonly hedges: Pick<RetryBudget, "began" | "tryTake">;
}

/**
 * Limits extra attempts to a share of the ordinary ones, so that failing targets are not flooded
 * with retries: within any ten seconds, extras are at most that share, or the floor if greater.
 * While several keys ask, one gets at most half: its failing requests must not use up the retries
 * of the others.
 */
export class RetryBudget {
  readonly #options: RetryBudgetOptions;
  /** By name of a target or alias; bounded by the configuration. */
  readonly #counts = new Map<string, Counts>();

  constructor(options: RetryBudgetOptions) {
    this.#options = options;
  }

  began(name: string): void {
    this.#countsOf(name).ordinary.add(this.#options.clock.monotonic());
  }

  /** Takes one extra attempt; false when the budget, or the key's part of it, is used up. */
  tryTake(name: string, key: string): boolean {
    const nowMs = this.#options.clock.monotonic();
    const { retryBudgetPercent, retryFloor } = this.#options.settings();
    const { ordinary, extra, keys } = this.#countsOf(name);
    const hasOthers = keys.hasOthers(key, nowMs);
    const share = (ordinary.sum(nowMs) * retryBudgetPercent) / 100;
    const most = Math.max(retryFloor, share);
    if (extra.sum(nowMs) + 1 > most) return false;
    if (hasOthers && keys.extrasOf(key).sum(nowMs) + 1 > Math.max(1, most / 2)) return false;
    extra.add(nowMs);
    keys.extrasOf(key).add(nowMs);
    return true;
  }

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
        keys: new AskingKeys(),
      };
      this.#counts.set(name, counts);
    }
    return counts;
  }
}

interface Counts {
  readonly ordinary: RecentCount;
  readonly extra: RecentCount;
  readonly keys: AskingKeys;
}

/** The keys that ask for extra attempts. */
class AskingKeys {
  readonly #extras = new Map<string, RecentCount>();
  #lastKey: string | undefined;
  #changedAtMs = Number.NEGATIVE_INFINITY;

  hasOthers(key: string, nowMs: number): boolean {
    if (this.#lastKey !== undefined && this.#lastKey !== key) this.#changedAtMs = nowMs;
    this.#lastKey = key;
    return nowMs - this.#changedAtMs < countedSeconds * 1_000;
  }

  extrasOf(key: string): RecentCount {
    return this.#extras.get(key) ?? keepIn(this.#extras, key, new RecentCount(countedSeconds + 1));
  }
}
