import type { Pool } from "../domain/limits/capacity.ts";
import type { Environment, Model } from "../domain/model.ts";
import type { Plan } from "../domain/limits/plan.ts";
import type { RoutingSettings } from "../domain/routing-settings.ts";
import type { DrainSettings, ImageFetchSettings, Timeouts } from "../domain/upstream-settings.ts";
import type { UpstreamAdapter } from "../upstreams/adapter.ts";

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
}

/** One configured endpoint of a provider, ready for use. */
export interface Upstream {
  readonly name: string;
  readonly adapter: UpstreamAdapter;
  readonly timeouts: Timeouts;
  /** Most requests under way at once. */
  readonly maxInFlight: number;
  /** Undefined: a stream whose caller has left is aborted. */
  readonly drain: DrainSettings | undefined;
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
