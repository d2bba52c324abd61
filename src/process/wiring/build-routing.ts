import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { RoutingSettings } from "../../domain/settings.ts";
import type { PoolUnits } from "../../admission/capacity/pool-bounds.ts";
import { Capacity, type CapacityOptions } from "../../admission/capacity/capacity.ts";
import { RetryBudget, type RetryBudgets } from "../../routing/retry-budget.ts";
import { TargetHealth } from "../../routing/health/target-health.ts";
import type { CallServices } from "../../call/services.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import { TargetProber } from "../../call/attempts/target-prober.ts";
import type { Transport } from "../../upstream-client/transport.ts";
import type { LimitStore } from "../../store/limits/limit-store.ts";
import type { RoutingEvents } from "../../telemetry/events/routing-events.ts";

export interface RoutingOptions {
  readonly clock: Clock;
  /** Read at each use: a reload changes it. */
  readonly settings: () => RoutingSettings;
  readonly events: Pick<
    RoutingEvents,
    "targetEjected" | "targetReturned" | "targetProbed" | "waited"
  >;
  /** Units of a pool that live keys hold. */
  readonly units: PoolUnits;
  readonly limits: LimitStore;
  /** For probes. */
  readonly transport: Transport;
  readonly hosts: CallServices["hosts"];
  readonly sharing?: RoutingSharing | undefined;
}

type Budgets = Readonly<Record<keyof RetryBudgets, RetryBudget>>;

/** What several processes share about targets. */
export interface RoutingSharing {
  /** How places are shared. */
  readonly places: Pick<CapacityOptions, "parts" | "recall">;
  /** Called with what counts the places that this process holds. */
  attach(own: Capacity): void;
}

export interface RoutingServices {
  readonly health: TargetHealth;
  readonly prober: TargetProber;
  readonly budget: Budgets;
  readonly capacity: Capacity;
}

/** Builds the state of targets that all calls of the process share. */
export function buildRouting(options: RoutingOptions): RoutingServices {
  const { clock, settings, events, limits, units, transport, hosts, sharing } = options;
  const health = new TargetHealth({
    clock,
    settings: () => settings().ejection,
    onEjected: (ejection) => events.targetEjected(ejection),
    onReturned: (returned) => events.targetReturned(returned),
  });
  const capacity = new Capacity({
    clock,
    limits,
    settings,
    units,
    limitOf: (targetId) => health.limitOf(targetId),
    onWaited: (pool, waited) => events.waited({ pool, ...waited }),
    ...sharing?.places,
  });
  sharing?.attach(capacity);
  const budgets = {
    retries: new RetryBudget({ clock, settings }),
    hedges: new RetryBudget({ clock, settings }),
  };
  return {
    health,
    prober: new TargetProber({
      clock,
      health,
      capacity,
      transport,
      hosts,
      onProbed: (target, failure) => events.targetProbed(target, failure),
    }),
    budget: budgets,
    capacity,
  };
}

/** The configuration in use after a reload. */
export interface Followed {
  readonly config: Pick<Config, "environments">;
  readonly snapshot: Snapshot;
  readonly events: RoutingEvents;
}

/** Applies a new configuration and forgets targets and aliases that it lacks. */
export function followConfig(
  { health, budget, capacity }: RoutingServices,
  { config, snapshot, events }: Followed,
): void {
  const targets = new Set<string>();
  const aliases = new Set<string>();
  for (const { models } of config.environments) {
    for (const model of models.values()) {
      aliases.add(model.alias);
      for (const { id } of model.targets) targets.add(id);
    }
  }
  health.retain(targets);
  budget.retries.retain(targets);
  budget.hedges.retain(aliases);
  capacity.follow(snapshot);
  events.configured({ targets, aliases });
}
