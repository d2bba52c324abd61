import type { Config } from "./config/config.ts";
import type { Clock } from "./domain/clock.ts";
import type { RoutingSettings } from "./domain/routing-settings.ts";
import type { CapacityGate } from "./pipeline/capacity/place.ts";
import { RetryBudget } from "./pipeline/routing/retry-budget.ts";
import { TargetHealth } from "./pipeline/routing/target-health.ts";
import type { PipelineServices } from "./pipeline/services.ts";
import type { RoutingEvents } from "./telemetry/routing-events.ts";

export interface RoutingOptions {
  readonly clock: Clock;
  /** Read again whenever it matters: a reload changes it. */
  readonly settings: () => RoutingSettings;
  readonly events: Pick<RoutingEvents, "targetEjected" | "targetReturned">;
}

export type RoutingServices = Pick<PipelineServices, "health" | "budget" | "capacity">;

/** What calls know of targets together, for as long as the process runs. */
export function buildRouting({ clock, settings, events }: RoutingOptions): RoutingServices {
  return {
    health: new TargetHealth({
      clock,
      settings: () => settings().ejection,
      onEjected: (ejection) => events.targetEjected(ejection),
      onReturned: (target) => events.targetReturned(target),
    }),
    budget: new RetryBudget({ clock, settings }),
    capacity: openGate,
  };
}

const openGate: CapacityGate = {
  tryEnter: () => ({ place: freePlace }),
  enter: () => Promise.resolve({ place: freePlace }),
};

const freePlace = {
  waitedMs: 0,
  position: undefined,
  settle: () => undefined,
  leave: () => undefined,
};

/** Forgets what the configuration no longer has. */
export function retainRouting(
  { health, budget }: RoutingServices,
  { environments }: Pick<Config, "environments">,
  events: RoutingEvents,
): void {
  const targets = new Set<string>();
  const aliases = new Set<string>();
  for (const { models } of environments) {
    for (const model of models.values()) {
      aliases.add(model.alias);
      for (const { id } of model.targets) targets.add(id);
    }
  }
  health.retain(targets);
  budget.retain(aliases);
  events.targetsConfigured(targets);
}
