import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { EndedWait } from "../metrics/metrics.ts";
import { type EventOptions, upstreamOf } from "./events.ts";

export interface TargetOut {
  readonly target: string;
  /** Set when only the calls of this key failed; undefined: out for all. */
  readonly key: string | undefined;
  readonly forMs: number;
  /** Times in a row. */
  readonly times: number;
  /** A text of the gateway, never of a provider. */
  readonly because: string;
}

/** What calls can reach. */
export interface ConfiguredRoutes {
  /** `upstream/model`. */
  readonly targets: ReadonlySet<string>;
  readonly aliases: ReadonlySet<string>;
}

/** Events of targets and of failed attempts. */
export class RoutingEvents {
  readonly #logger: EventOptions["logger"];
  readonly #metrics: EventOptions["metrics"];

  constructor({ logger, metrics }: Pick<EventOptions, "logger" | "metrics">) {
    this.#logger = logger;
    this.#metrics = metrics;
  }

  /** At the start and after each reload. Counters of what is configured start at 0. */
  configured({ targets, aliases }: ConfiguredRoutes): void {
    const { counters } = this.#metrics;
    this.#metrics.targetsConfigured(targets);
    for (const target of targets) {
      counters.add("sluice_target_outs_total", [target, "all"], 0);
      counters.add("sluice_target_outs_total", [target, "key"], 0);
      counters.add("sluice_target_probes_total", [target, "answered"], 0);
      counters.add("sluice_malformed_events_total", [upstreamOf(target)], 0);
      counters.add("sluice_upstream_troubles_total", [upstreamOf(target)], 0);
    }
    for (const alias of aliases) counters.add("sluice_guarantee_breaches_total", [alias], 0);
  }

  targetOut({ target, key, forMs, times, because }: TargetOut): void {
    const { counters } = this.#metrics;
    counters.add("sluice_target_outs_total", [target, key === undefined ? "all" : "key"]);
    if (key === undefined) this.#metrics.targetOut(target, true);
    const message =
      key === undefined
        ? "a target keeps failing and is out where others can serve"
        : "a target keeps failing the calls of one key and is out for that key";
    const rounded = Math.round(forMs);
    this.#logger.log("warn", message, { target, key, forMs: rounded, times, because });
  }

  targetReturned({ target, key }: Pick<TargetOut, "target" | "key">): void {
    if (key === undefined) this.#metrics.targetOut(target, false);
    this.#logger.log("info", "a target works again", { target, key });
  }

  /** `failure`: why the probe failed; undefined: it was answered. */
  targetProbed(target: string, failure: UpstreamFailureDetails | undefined): void {
    const outcome = failure?.kind ?? "answered";
    this.#metrics.counters.add("sluice_target_probes_total", [target, outcome]);
    this.#logger.log("debug", "a target was probed", { target, outcome });
  }

  /** A wait for a place at a pool or an upstream ended. */
  waited(wait: EndedWait): void {
    this.#metrics.waited(wait);
  }

  /** `decision`: where the attempt is retried, or why it is not. */
  retryDecided(model: string, decision: string): void {
    this.#metrics.counters.add("sluice_retry_decisions_total", [model, decision]);
  }
}
