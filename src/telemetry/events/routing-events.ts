import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { Logger } from "../log/logger.ts";
import type { CapacityMetrics } from "../metrics/capacity-metrics.ts";
import type { RoutingMetrics } from "../metrics/routing-metrics.ts";

export interface RoutingEventOptions {
  readonly logger: Logger;
  readonly metrics: RoutingMetrics;
  readonly capacity: CapacityMetrics;
}

export interface TargetEjection {
  readonly target: string;
  /** Set when only the calls of this key failed; undefined: ejected for all. */
  readonly key: string | undefined;
  readonly forMs: number;
  /** Ejections in a row. */
  readonly times: number;
  /** The gateway's own text. */
  readonly because: string;
}

/** Events of targets and of failed attempts. */
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

  targetEjected({ target, key, forMs, times, because }: TargetEjection): void {
    this.#metrics.ejected(target, key === undefined ? "all" : "key");
    const message =
      key === undefined
        ? "a target keeps failing and is ejected where others can serve"
        : "a target keeps failing the calls of one key and is ejected for that key";
    const rounded = Math.round(forMs);
    this.#logger.log("warn", message, { target, key, forMs: rounded, times, because });
  }

  targetReturned({ target, key }: Pick<TargetEjection, "target" | "key">): void {
    if (key === undefined) this.#metrics.returned(target);
    this.#logger.log("info", "a target works again", { target, key });
  }

  /** `failure`: why the probe failed; undefined: it was answered. */
  targetProbed(target: string, failure: UpstreamFailureDetails | undefined): void {
    this.#metrics.probed(target, failure?.kind ?? "answered");
    this.#logger.log("debug", "a target was probed", {
      target,
      outcome: failure?.kind ?? "answered",
    });
  }

  /** A wait for a slot of a pool or upstream ended. */
  waited(wait: Parameters<CapacityMetrics["waited"]>[0]): void {
    this.#capacity.waited(wait);
  }

  /** `decision`: where the attempt is retried, or why it is not. */
  retryDecided(model: string, decision: string): void {
    this.#metrics.retryDecided(model, decision);
  }
}
