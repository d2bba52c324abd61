import type { Environment } from "../domain/model.ts";
import type { Plan } from "../domain/plan.ts";
import type { UpstreamAdapter } from "../upstreams/adapter.ts";
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
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly settings: CallSettings;
}

/** One configured endpoint of a provider, ready for use. */
export interface Upstream {
  readonly name: string;
  readonly adapter: UpstreamAdapter;
  readonly timeouts: Timeouts;
  /** Attempts under way at this upstream. */
  readonly inFlight: InFlight;
}

export interface Timeouts {
  readonly connectMs: number;
  /** From sending to the first event of the answer. */
  readonly firstByteMs: number;
  /** Between two pieces of the answer. */
  readonly idleMs: number;
  readonly totalMs: number;
}

export interface CallSettings {
  readonly jsonDepth: number;
  /** Largest whole answer read from an upstream. */
  readonly answerLimitBytes: number;
  readonly imageFetch: ImageFetchSettings;
}

/** How images are read by address, for upstreams that take only the images themselves. */
export interface ImageFetchSettings {
  readonly enabled: boolean;
  /** Largest image. */
  readonly maxBytes: number;
  /** For one image, redirects included. */
  readonly timeoutMs: number;
  /** Of one request. */
  readonly maxImages: number;
  /** Lower case, without port: images may come from any of their ports. None is any host. */
  readonly allowedHosts: readonly string[];
  /** Metadata services of clouds stay out of reach all the same. */
  readonly allowsPrivateAddresses: boolean;
}

export function environmentAt(snapshot: Snapshot, host: string): Environment | undefined {
  return snapshot.environmentsByHost.get(host) ?? snapshot.defaultEnvironment;
}
