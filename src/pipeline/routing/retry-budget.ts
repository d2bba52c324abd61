import type { Clock } from "../../domain/clock.ts";
import type { RoutingSettings } from "../../domain/routing-settings.ts";
import { SecondsRing } from "./seconds-ring.ts";

const countedSeconds = 10;

export interface RetryBudgetOptions {
  readonly clock: Clock;
  readonly settings: () => Pick<RoutingSettings, "retryBudgetPercent" | "retryFloor">;
}

/**
 * How many retries each model may have: a share of its calls, so that a provider which fails is not
 * asked many times as much as one that works. At any retry, those of the ten seconds before it are
 * at most that share of the calls that began in them, or the floor where that is more.
 */
export class RetryBudget {
  readonly #options: RetryBudgetOptions;
  /** By alias; no more than the configuration has models. */
  readonly #models = new Map<string, ModelRetries>();

  constructor(options: RetryBudgetOptions) {
    this.#options = options;
  }

  callBegan(alias: string): void {
    this.#modelOf(alias).calls.add(this.#options.clock.monotonic());
  }

  /** Takes one retry; false when there is none. */
  tryRetry(alias: string): boolean {
    const nowMs = this.#options.clock.monotonic();
    const { retryBudgetPercent, retryFloor } = this.#options.settings();
    const { calls, retries } = this.#modelOf(alias);
    const share = (calls.sum(nowMs) * retryBudgetPercent) / 100;
    if (retries.sum(nowMs) + 1 > Math.max(retryFloor, share)) return false;
    retries.add(nowMs);
    return true;
  }

  /** Forgets all other models. */
  retain(aliases: ReadonlySet<string>): void {
    for (const alias of this.#models.keys()) if (!aliases.has(alias)) this.#models.delete(alias);
  }

  #modelOf(alias: string): ModelRetries {
    let model = this.#models.get(alias);
    if (model === undefined) {
      model = {
        calls: new SecondsRing(countedSeconds),
        // Ten seconds that begin within a second reach into an eleventh.
        retries: new SecondsRing(countedSeconds + 1),
      };
      this.#models.set(alias, model);
    }
    return model;
  }
}

interface ModelRetries {
  readonly calls: SecondsRing;
  readonly retries: SecondsRing;
}
