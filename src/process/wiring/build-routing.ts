import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { RoutingSettings } from "../../domain/settings.ts";
import type { PoolUnits } from "../../admission/capacity/pool-bounds.ts";
import type { CapacityGate } from "../../admission/capacity/place.ts";
import { Capacity, type CapacityOptions } from "../../admission/capacity/capacity.ts";
import type { ConcurrencyLimit } from "../../routing/health/concurrency-limit.ts";
import { RetryBudget, type ExtraAttempts, type RetryBudgets } from "../../routing/retry-budget.ts";
import { TargetHealth, type HealthHint } from "../../routing/health/target-health.ts";
import type { CallServices } from "../../call/services.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import { TargetProber } from "../../call/attempts/target-prober.ts";
import type { Transport } from "../../upstream-client/transport.ts";
import type { LimitStore } from "../../store/store.ts";
import type { RoutingEvents } from "../../telemetry/events/routing-events.ts";

export interface RoutingOptions {
  readonly clock: Clock;
  /** Read at each use: a reload changes it. */
  readonly settings: () => RoutingSettings;
  readonly events: Pick<
    RoutingEvents,
    "targetEjected" | "targetReturned" | "targetTakenOver" | "targetProbed" | "waited"
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
type ProcessBudgets = Readonly<
  Record<keyof RetryBudgets, ExtraAttempts & Pick<RetryBudget, "retain">>
>;

/** What several workers share. */
export interface RoutingSharing {
  /** How places are shared, where no control process gives them. */
  readonly places?: Pick<CapacityOptions, "parts" | "recall">;
  /** `own`: counts the places that this process holds. */
  capacity(own: Capacity): ProcessCapacity;
  newLimit(targetId: string): ConcurrencyLimit;
  /** `own`: for this process, while control is unavailable. */
  budgets(own: Budgets): ProcessBudgets;
  /** The budget settings for this process alone. */
  shareOf(settings: RoutingSettings): RoutingSettings;
  /** Tells the other workers. */
  tellHealth(hint: HealthHint): void;
  /** `hear`: called with hints of other workers. */
  hearHealth(hear: (hint: HealthHint) => void): void;
}

export interface RoutingServices {
  readonly health: TargetHealth;
  readonly prober: TargetProber;
  readonly budget: ProcessBudgets;
  readonly capacity: ProcessCapacity;
}

/** The places that calls of this process take. */
export type ProcessCapacity = CapacityGate &
  Pick<Capacity, "follow" | "unitsChanged" | "views" | "at">;

/** Builds the state of targets that all calls of the process share. */
export function buildRouting(options: RoutingOptions): RoutingServices {
  const { clock, settings, events, limits, units, transport, hosts, sharing } = options;
  const health = new TargetHealth({
    clock,
    settings: () => settings().ejection,
    ...(sharing && { newLimit: (target: string) => sharing.newLimit(target) }),
    onEjected: (ejection) => {
      events.targetEjected(ejection);
      const { target, key, ...ejected } = ejection;
      sharing?.tellHealth({ target, key, ejected });
    },
    onReturned: (returned) => {
      events.targetReturned(returned);
      sharing?.tellHealth({ ...returned, ejected: undefined });
    },
    onTakenOver: ({ target, key, ejected }) =>
      events.targetTakenOver(target, key, ejected !== undefined),
  });
  const own = new Capacity({
    clock,
    limits,
    settings,
    units,
    limitOf: (targetId) => health.limitOf(targetId),
    onWaited: (pool, waited) => events.waited({ pool, ...waited }),
    ...sharing?.places,
  });
  const capacity = sharing?.capacity(own) ?? own;
  sharing?.hearHealth((hint) => health.takeOver(hint));
  const ownSettings = () => sharing?.shareOf(settings()) ?? settings();
  const budgets = {
    retries: new RetryBudget({ clock, settings: ownSettings }),
    hedges: new RetryBudget({ clock, settings: ownSettings }),
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
    budget: sharing?.budgets(budgets) ?? budgets,
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
