import type { Config } from "../../config/config.ts";
import { buildRouting, type RoutingServices, type RoutingSharing } from "./build-routing.ts";
import type { RoutingSettings } from "../../domain/settings.ts";
import type { Clock } from "../../domain/clock.ts";
import { noProxies, type Proxies } from "../../domain/upstream-settings.ts";
import type { Transport } from "../../upstream-client/transport.ts";
import type { CountArrival } from "../../edge/dispatch/dispatch-options.ts";
import type { PoolUnits } from "../../admission/capacity/pool-bounds.ts";
import { connectProbe, resolveHost } from "../../upstream-client/connect-probe.ts";
import { countRequest } from "../../admission/admit.ts";
import { TokenEstimator } from "../../admission/estimate/estimate.ts";
import { type ConnectProbe, HostProbes } from "../../upstream-client/host-probes.ts";
import { CountingTargets } from "../../call/counting-targets.ts";
import { ImageMemory, imageMemoryBytes } from "../../call/images/image-memory.ts";
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
  readonly config: Pick<Config, "limits" | "upstreamRequests" | "processes">;
  /** Forward proxies on the way to upstreams. */
  readonly proxies?: Proxies;
  /** Read at each use: a reload changes it. */
  readonly routing: () => RoutingSettings;
  readonly routingEvents: RoutingEvents;
  /** Units of a pool that live keys hold. */
  readonly units: PoolUnits;
  readonly sharing?: RoutingSharing | undefined;
  /** Default: a TCP connection. */
  readonly probe?: ConnectProbe;
  readonly clock: Clock;
  readonly ledger: CallLedger;
  readonly events: TelemetryEvents;
  readonly running: RunningCalls;
  readonly refusals: Pick<RefusalLog, "record">;
  readonly overload: Pick<OverloadOptions, "settings" | "callsUnderWay" | "events">;
}

/** A reservation may outlive any call; an unsettled one leaves its window anyway. */
export const limitStoreBounds = { reservationTtlMs: 24 * 3_600_000 };

export interface BuiltServices extends Omit<CallServices, keyof RoutingServices>, RoutingServices {
  /** The caller starts and stops it. */
  readonly overload: OverloadGuard;
  /** Counts a request before its body is read. */
  readonly count: CountArrival;
}

function newClient({ proxies, config, clock }: ServiceOptions): Transport {
  return createUpstreamClient({
    proxies: proxies ?? noProxies,
    mostConnections: config.upstreamRequests,
    monotonic: () => clock.monotonic(),
  });
}

/** Builds what the steps of a call depend on. */
export function buildServices(options: ServiceOptions): BuiltServices {
  const { config, clock, ledger, events, running, refusals } = options;
  const random = options.random ?? Math.random;
  const resolve = options.resolveHost ?? resolveHost;
  const limits = options.limits ?? new MemoryLimitStore({ clock, random, ...limitStoreBounds });
  const { routingEvents, units } = options;
  const { defaultOutputTokens } = config.limits;
  const processes = options.sharing === undefined ? 1 : config.processes;
  const transport = options.transport ?? newClient(options);
  const probe = options.probe ?? connectProbe({ resolveHost: resolve, clock });
  const hosts = new HostProbes(probe, clock);
  return {
    ...buildRouting({
      clock,
      limits,
      units,
      settings: options.routing,
      events: routingEvents,
      transport,
      hosts,
      sharing: options.sharing,
    }),
    clock,
    random,
    transport,
    hosts,
    imageMemory: new ImageMemory(Math.floor(imageMemoryBytes / processes)),
    resolveHost: resolve,
    limits,
    count: (kind, request) => countRequest(kind, request, { limits, clock }),
    estimator: new TokenEstimator({ defaultOutputTokens, nowMs: clock.monotonic() }),
    ledger,
    running,
    overload: new OverloadGuard({ clock, random, ...options.overload }),
    onCallEnded(record, about) {
      running.leave(record);
      events.callEnded(record, about);
      const { error } = about;
      const refusal = error && refusalOfStream(record, error, clock.now());
      if (refusal !== undefined) refusals.record(refusal);
    },
    onSettleFailed: (callId, error) => events.settleFailed(callId, error),
    onHookFailed: (callId, hook, error) => events.hookFailed(callId, hook, error),
    onRetryDecided: (alias, decision) => routingEvents.retryDecided(alias, decision),
    onAttemptFailed: (call, candidate, failure) =>
      events.attemptFailed(call.id, candidate.target.id, failure),
    counting: new CountingTargets(clock),
    onCountFailed: (call, candidate, failure) =>
      events.countFailed(call.id, candidate.target.id, failure),
    onMalformedEvents: (call, { target }, count) =>
      events.malformedEvents({ id: call.id, upstream: target.upstream, target: target.id, count }),
  };
}
