import { lookup } from "node:dns/promises";
import type { LimitStore } from "../../store/limits/limit-store.ts";
import { TargetProber } from "../../call/attempts/target-prober.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import { Sessions } from "../../routing/affinity.ts";
import { TargetHealth } from "../../routing/health/target-health.ts";
import { RetryBudget } from "../../routing/retry-budget.ts";
import { Capacity } from "../../admission/capacity/capacity.ts";
import type { SharedSlots } from "../../admission/capacity/shared/shared-slots.ts";
import type { Config } from "../../config/config.ts";
import type { RoutingSettings } from "../../domain/settings.ts";
import type { Clock } from "../../domain/clock.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import { Calendar } from "../../domain/money/calendar.ts";
import type { PriceBook } from "../../domain/money/price.ts";
import { Pseudonyms } from "../../domain/keys/pseudonyms.ts";
import { ValueTags } from "../../call/opaque/value-tags.ts";
import { noProxies, type Proxies } from "../../domain/upstream-settings.ts";
import type { Transport } from "../../upstream-client/transport.ts";
import type { CountArrival } from "../../edge/dispatch/dispatch-options.ts";
import type { PoolUnits } from "../../admission/capacity/pool-bounds.ts";
import { countRequest } from "../../admission/admit.ts";
import { EndUserScopes } from "../../admission/end-user-scopes.ts";
import { TokenEstimator } from "../../admission/estimate/estimate.ts";
import { CountingTargets } from "../../call/counting-targets.ts";
import { MemoryGate } from "../../domain/waiting/memory-gate.ts";
import { imageMemoryBytes } from "../../call/images/call-images.ts";
import type { CallLedger } from "../../domain/usage/usage.ts";
import { OverloadGuard, type OverloadOptions } from "../../admission/overload/overload.ts";
import { type RefusalLog, refusalOfStream } from "../../admission/refusals/refusal-log.ts";
import type { RunningCalls } from "../../call/running-calls.ts";
import type { CallServices } from "../../call/services.ts";
import { createUpstreamClient } from "../../upstream-client/http/http-client.ts";
import { MemoryLimitStore } from "../../store/limits/memory/limit-store.ts";
import type { RoutingEvents } from "../../telemetry/events/routing-events.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

export interface ServiceOptions extends Partial<
  Pick<CallServices, "limits" | "resolveHost" | "random" | "transport">
> {
  readonly peppers: Pick<Peppers, "first" | "all">;
  readonly config: Pick<Config, "limits" | "upstreamRequests" | "processes">;
  readonly proxies?: Proxies;
  /** Read at each use: a reload changes it. */
  readonly routing: () => RoutingSettings;
  readonly routingEvents: RoutingEvents;
  /** Units of a pool that live keys hold. */
  readonly units: PoolUnits;
  readonly sharing?: SharedSlots | undefined;
  readonly clock: Clock;
  readonly ledger: CallLedger;
  readonly prices: PriceBook;
  readonly events: TelemetryEvents;
  readonly running: RunningCalls;
  readonly refusals: Pick<RefusalLog, "record">;
  readonly overload: Pick<OverloadOptions, "settings" | "callsUnderWay" | "events">;
}

/** What the steps of a call depend on. */
export type BuiltServices = ReturnType<typeof buildServices>;

/** The caller starts and stops `overload`. */
export function buildServices(options: ServiceOptions) {
  const { config, clock, ledger, prices, events, running, refusals } = options;
  const random = options.random ?? Math.random;
  const limits = options.limits ?? new MemoryLimitStore({ clock, random });
  const { routingEvents } = options;
  const { defaultOutputTokens } = config.limits;
  const processes = options.sharing === undefined ? 1 : config.processes;
  const transport =
    options.transport ??
    createUpstreamClient({
      proxies: options.proxies ?? noProxies,
      mostConnections: config.upstreamRequests,
      monotonic: () => clock.monotonic(),
    });
  return {
    ...buildRouting({ ...options, limits, transport }),
    clock,
    random,
    tags: new ValueTags(options.peppers),
    names: new Pseudonyms(options.peppers),
    sessions: new Sessions(options.peppers),
    transport,
    imageMemory: new MemoryGate(clock),
    imageMemoryBytes: Math.floor(imageMemoryBytes / processes),
    resolveHost: options.resolveHost ?? resolveHost,
    limits,
    /** Counts a request before its body is read. */
    count: (kind, request) => countRequest(kind, request, { limits, clock }),
    endUsers: new EndUserScopes({
      monotonic: () => clock.monotonic(),
      onOverflow: () => events.endUsersOverflowed(),
    }),
    estimator: new TokenEstimator({ defaultOutputTokens, nowMs: clock.monotonic() }),
    ledger,
    prices,
    calendar: new Calendar(),
    running,
    overload: new OverloadGuard({ clock, random, ...options.overload }),
    onCallEnded(record, about) {
      running.leave(record.id);
      events.callEnded(record, about);
      const { error } = about;
      const refusal = error && refusalOfStream(record, error, clock.now());
      if (refusal !== undefined) refusals.record(refusal);
    },
    onSettleFailed: (callId, error) => events.settleFailed(callId, error),
    onLabelDropped: (label) => events.labelDropped(label),
    onHookFailed: (callId, hook, error) => events.hookFailed(callId, hook, error),
    onRetryDecided: (alias, decision) => routingEvents.retryDecided(alias, decision),
    onAttemptFailed: (call, candidate, failure) =>
      events.attemptFailed(call.id, candidate.target.id, failure),
    counting: new CountingTargets(clock),
    onCountFailed: (call, candidate, failure) =>
      events.countFailed(call.id, candidate.target.id, failure),
    onMalformedEvents: (call, { target }, count) =>
      events.malformedEvents({ id: call.id, upstream: target.upstream, target: target.id, count }),
  } satisfies CallServices & Record<"count", CountArrival>;
}

export interface RoutingOptions extends Pick<
  ServiceOptions,
  "clock" | "routing" | "units" | "sharing"
> {
  readonly routingEvents: Pick<
    RoutingEvents,
    "targetOut" | "targetReturned" | "targetProbed" | "waited"
  >;
  readonly limits: LimitStore;
  /** For probes. */
  readonly transport: Transport;
}

export type RoutingServices = ReturnType<typeof buildRouting>;

/** Builds the state of targets that all calls of the process share. */
export function buildRouting(options: RoutingOptions) {
  const { clock, routing: settings, routingEvents: events, sharing } = options;
  const { limits, units, transport } = options;
  const health = new TargetHealth({
    clock,
    settings: () => settings().out,
    onOut: (target) => events.targetOut(target),
    onReturned: (returned) => events.targetReturned(returned),
  });
  const capacity = new Capacity({
    clock,
    limits,
    settings,
    units,
    limitOf: (targetId) => health.limitOf(targetId),
    onWaited: (pool, waited) => events.waited({ pool, ...waited }),
    shared: sharing,
  });
  return {
    health,
    prober: new TargetProber({
      clock,
      health,
      capacity,
      transport,
      onProbed: (target, failure) => events.targetProbed(target, failure),
    }),
    budget: {
      retries: new RetryBudget({ clock, settings }),
      hedges: new RetryBudget({ clock, settings }),
    },
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

/** Resolves a host name to all its addresses with the system resolver. Rejects if it has none. */
async function resolveHost(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}
