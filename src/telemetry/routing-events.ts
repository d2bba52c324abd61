import type { Logger } from "./logger.ts";
import type { CapacityMetrics } from "./capacity-metrics.ts";
import type { RoutingMetrics } from "./routing-metrics.ts";

export interface RoutingEventOptions {
  readonly logger: Logger;
  readonly metrics: RoutingMetrics;
  readonly capacity: CapacityMetrics;
}

export interface TargetEjection {
  readonly target: string;
  readonly forMs: number;
  /** How often in a row. */
  readonly times: number;
  /** In the gateway's own words. */
  readonly because: string;
}

/** What happens to targets, and to attempts that fail at them. */
export class RoutingEvents {
  readonly #logger: Logger;
  readonly #metrics: RoutingMetrics;
  readonly #capacity: CapacityMetrics;

  constructor({ logger, metrics, capacity }: RoutingEventOptions) {
    this.#capacity = capacity;
    this.#logger = logger;
    this.#metrics = metrics;
  }

  /** At the start and after each reload. */
  targetsConfigured(targets: Iterable<string>): void {
    this.#metrics.configured(targets);
  }

  targetEjected({ target, forMs, times, because }: TargetEjection): void {
    this.#metrics.ejected(target);
    const message = "a target keeps failing and is left alone where others can serve";
    this.#logger.log("warn", message, { target, forMs: Math.round(forMs), times, because });
  }

  targetReturned(target: string): void {
    this.#metrics.returned(target);
    this.#logger.log("info", "a target works again", { target });
  }

  /** A wait for a place at a pool or upstream has ended. */
  waited(wait: Parameters<CapacityMetrics["waited"]>[0]): void {
    this.#capacity.waited(wait);
  }

  /** `decision`: where the attempt is made again, or the reason why it is not. */
  retryDecided(model: string, decision: string): void {
    this.#metrics.retryDecided(model, decision);
  }
}
