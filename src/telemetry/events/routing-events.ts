import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { TargetOut } from "../../domain/model.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { Outage } from "../log/outage.ts";
import { type EventOptions, upstreamOf } from "./events.ts";

/** What calls can reach. */
interface ConfiguredRoutes {
  /** `upstream/model`. */
  readonly targets: ReadonlySet<string>;
  readonly aliases: ReadonlySet<string>;
}

export type RoutingEvents = ReturnType<typeof routingEvents>;

/** Events of targets and of failed attempts. */
export function routingEvents({ logger, metrics }: Pick<EventOptions, "logger" | "metrics">) {
  const { counters } = metrics;
  return {
    /** At the start and after each reload. Counters of what is configured start at 0. */
    configured({ targets, aliases }: ConfiguredRoutes): void {
      metrics.targetsConfigured(targets);
      for (const target of targets) {
        counters.of("sluice_target_outs_total", target, "all");
        counters.of("sluice_target_outs_total", target, "key");
        counters.of("sluice_target_probes_total", target, "answered");
        counters.of("sluice_malformed_events_total", upstreamOf(target));
        counters.of("sluice_upstream_troubles_total", upstreamOf(target));
      }
      for (const alias of aliases) counters.of("sluice_guarantee_breaches_total", alias);
    },

    targetOut({ target, key, forMs, times, because }: TargetOut): void {
      counters.of("sluice_target_outs_total", target, key === undefined ? "all" : "key").value += 1;
      if (key === undefined) metrics.targetOut(target, true);
      const message =
        key === undefined
          ? "a target keeps failing and is out where others can serve"
          : "a target keeps failing the calls of one key and is out for that key";
      logger.log("warn", message, { target, key, forMs: Math.round(forMs), times, because });
    },

    targetReturned({ target, key }: Pick<TargetOut, "target" | "key">): void {
      if (key === undefined) metrics.targetOut(target, false);
      logger.log("info", "a target works again", { target, key });
    },

    /** `failure`: why the probe failed; undefined: it was answered. */
    targetProbed(target: string, failure: UpstreamFailureDetails | undefined): void {
      const outcome = failure?.kind ?? "answered";
      counters.of("sluice_target_probes_total", target, outcome).value += 1;
      logger.log("debug", "a target was probed", { target, outcome });
    },

    /** A wait for a place at a pool or an upstream ended. */
    waited: (wait: Parameters<typeof metrics.waited>[0]) => metrics.waited(wait),

    /** `decision`: where the attempt is retried, or why it is not. */
    retryDecided(model: string, decision: string): void {
      counters.of("sluice_retry_decisions_total", model, decision).value += 1;
    },
  };
}

/** Calls shed under overload: each one is counted, and the log gets a line per overload. */
export function overloadEvents(options: EventOptions) {
  const { metrics } = options;
  const outage = new Outage(options, {
    begins: "the process is overloaded; a share of the calls is refused with 503",
    ends: "the overload is over",
    level: "warn",
  });
  return {
    measureDelay: (delayMs: () => number) =>
      metrics.follow({ sluice_event_loop_delay_seconds: () => delayMs() / 1_000 }),
    callRefused(capacityClass: CapacityClass): void {
      metrics.counters.of("sluice_shed_calls_total", capacityClass).value += 1;
    },
    changed(isShedding: boolean): void {
      if (isShedding) outage.failed(undefined);
      else outage.recovered();
    },
  };
}
