import type { Pool } from "../domain/limits/capacity.ts";
import type { Environment, Model } from "../domain/model.ts";
import type { SamplingSettings } from "../domain/tracing.ts";
import type { Plan } from "../domain/limits/plan.ts";
import type { RoutingSettings } from "../domain/settings.ts";
import type {
  ConnectionSettings,
  DrainSettings,
  EndUserForwarding,
  ImageFetchSettings,
  StoredEndUsers,
  Timeouts,
} from "../domain/upstream-settings.ts";
import type { UpstreamAdapter } from "../upstreams/adapter.ts";
import type { CallHook } from "./call-hooks.ts";

/**
 * The configuration as calls read it, built and validated as a whole. A reload makes a new one;
 * running calls keep theirs.
 */
export interface Snapshot {
  /** By host name in lower case, without port. */
  readonly environmentsByHost: ReadonlyMap<string, Environment>;
  /** Serves every host that no other environment claims. */
  readonly defaultEnvironment: Environment | undefined;
  readonly plans: ReadonlyMap<string, Plan>;
  readonly pools: ReadonlyMap<string, Pool>;
  readonly routing: RoutingSettings;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly settings: CallSettings;
  /** In the order they run. */
  readonly hooks: readonly CallHook[];
}

/** A configured endpoint of a provider. */
export interface Upstream {
  readonly name: string;
  readonly adapter: UpstreamAdapter;
  readonly timeouts: Timeouts;
  readonly connections: ConnectionSettings;
  /** Limit on concurrent requests. */
  readonly maxInFlight: number;
  /** Undefined: a stream is aborted when its caller disconnects. */
  readonly drain: DrainSettings | undefined;
  readonly forwardEndUsers: EndUserForwarding;
  /** Id of the account that may name what the upstream holds. Undefined: none may. */
  readonly stateAccount: string | undefined;
}

interface CallSettings {
  /** Limit on a whole answer of an upstream, by model kind. */
  readonly answerLimitBytes: Readonly<Record<Model["kind"], number>>;
  /** Limit on values in a whole chat answer (`domain/chat/json-scan`). */
  readonly chatAnswerValues: number;
  /** Malformed events skipped in one streamed answer. */
  readonly malformedEvents: number;
  readonly imageFetch: ImageFetchSettings;
  /** How long to wait for the usage of a finished answer after its caller has disconnected. */
  readonly usageTimeoutMs: number;
  readonly endUsers: StoredEndUsers;
  /** Keys of tags that are stored. */
  readonly tags: readonly string[];
  /** Undefined: calls have no spans. */
  readonly sampling?: SamplingSettings | undefined;
}

export function environmentAt(snapshot: Snapshot, host: string): Environment | undefined {
  return snapshot.environmentsByHost.get(host) ?? snapshot.defaultEnvironment;
}
