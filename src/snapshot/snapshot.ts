import type { Pool } from "../domain/limits/capacity.ts";
import type { Environment, Model } from "../domain/model.ts";
import type { Plan } from "../domain/limits/plan.ts";
import type { RoutingSettings } from "../domain/routing-settings.ts";
import type { ImageFetchSettings, Timeouts } from "../domain/upstream-settings.ts";
import type { UpstreamAdapter } from "../upstreams/adapter.ts";
import type { CallHook } from "./call-hooks.ts";
import type { InFlight } from "./in-flight.ts";

/**
 * All that a call reads of the configuration, built and validated whole. A reload makes a new one;
 * a running call keeps the one it began with.
 */
export interface Snapshot {
  /** By host name in lower case, without port. */
  readonly environmentsByHost: ReadonlyMap<string, Environment>;
  /** Answers at every host that no other environment claims. */
  readonly defaultEnvironment: Environment | undefined;
  readonly plans: ReadonlyMap<string, Plan>;
  readonly pools: ReadonlyMap<string, Pool>;
  readonly routing: RoutingSettings;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly settings: CallSettings;
  /** In the order in which they run; none unless they are configured. */
  readonly hooks: readonly CallHook[];
}

/** One configured endpoint of a provider, ready for use. */
export interface Upstream {
  readonly name: string;
  readonly adapter: UpstreamAdapter;
  readonly timeouts: Timeouts;
  /** Attempts under way at this upstream. */
  readonly inFlight: InFlight;
  /** Undefined: a stream whose caller has left is aborted. */
  readonly drain: Draining | undefined;
}

/** Answers of one upstream that are read on after their callers have left. */
export interface Draining {
  /** For one answer. */
  readonly timeoutMs: number;
  /** Taken while one is read on; without a free one it is aborted. */
  readonly places: InFlight;
}

export interface CallSettings {
  /** Largest whole answer read from an upstream, by the kind of the model. */
  readonly answerLimitBytes: Readonly<Record<Model["kind"], number>>;
  /** Most values of a whole answer of a chat model (`domain/json-scan`). */
  readonly chatAnswerValues: number;
  /** Events without sense that are skipped in one streamed answer. */
  readonly malformedEvents: number;
  readonly imageFetch: ImageFetchSettings;
  /** How long the count of a finished answer is awaited when its caller has left. */
  readonly usageTimeoutMs: number;
}

export function environmentAt(snapshot: Snapshot, host: string): Environment | undefined {
  return snapshot.environmentsByHost.get(host) ?? snapshot.defaultEnvironment;
}
