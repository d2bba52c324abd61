import type { ApiSettings } from "../../dialects/api-settings.ts";
import type { Config } from "../../config/config.ts";
import type { Environment } from "../../domain/model.ts";
import { createNetworkList } from "../../domain/network.ts";
import { isSameValue } from "../../domain/same-value.ts";
import { CorsPolicy } from "../../edge/cors.ts";
import type { EdgeSettings } from "../../edge/edge-settings.ts";
import type { Snapshot, Upstream } from "../../snapshot/snapshot.ts";
import type { AdapterServices } from "../../upstreams/adapter.ts";
import { createAdapter } from "../../upstreams/registry.ts";

/** Events of one answer that are skipped; more than a few are no accident. */
const mostMalformedEvents = 10;

/** What the adapter of the upstream with this name needs from outside. */
type ServicesOf = (upstream: string) => AdapterServices;

/** The configuration that is replaced, and what was made of it. */
export interface Replaced {
  readonly config: Config;
  readonly snapshot: Snapshot;
}

/** Turns a valid configuration into what calls read. */
export function buildSnapshot(config: Config, services: ServicesOf, before?: Replaced): Snapshot {
  const environmentsByHost = new Map<string, Environment>();
  let defaultEnvironment: Environment | undefined;
  for (const { hosts, ...environment } of config.environments) {
    for (const host of hosts) {
      if (host === "*") defaultEnvironment = environment;
      else environmentsByHost.set(host, environment);
    }
  }
  return {
    environmentsByHost,
    defaultEnvironment,
    plans: config.plans,
    pools: config.pools,
    routing: config.routing,
    upstreams: buildUpstreams(config, services, before),
    settings: {
      answerLimitBytes: {
        chat: config.answers.chatLimitBytes,
        embedding: config.answers.embeddingLimitBytes,
      },
      chatAnswerValues: config.answers.chatValues,
      malformedEvents: config.streams.malformedEvent === "skip" ? mostMalformedEvents : 0,
      imageFetch: config.imageFetch,
      usageTimeoutMs: config.streams.usageTimeoutMs,
    },
  };
}

function buildUpstreams(
  config: Config,
  services: ServicesOf,
  before: Replaced | undefined,
): ReadonlyMap<string, Upstream> {
  const upstreams = new Map<string, Upstream>();
  for (const [name, settings] of config.upstreams) {
    const earlier = before?.snapshot.upstreams.get(name);
    // An adapter may hold credentials that took a while to get, so it is kept as long as it fits.
    const isSame = isSameValue(settings, before?.config.upstreams.get(name));
    const kept = isSame ? earlier?.adapter : undefined;
    const adapter = kept ?? createAdapter(settings, services(name));
    const { timeouts, maxInFlight, drain } = settings;
    upstreams.set(name, { name, adapter, timeouts, maxInFlight, drain });
  }
  return upstreams;
}

/** What the listeners accept, under this configuration. */
export function buildEdge({ http }: Config): EdgeSettings {
  const cors = new CorsPolicy(http.allowedOrigins);
  const trustedProxies = createNetworkList(http.trustedProxies);
  return { cors, bodyLimits: http, maxHeaders: http.maxHeaders, trustedProxies };
}

export function buildApiSettings({ streams, http }: Pick<Config, "streams" | "http">): ApiSettings {
  return { ...streams, decodedLimitBytes: http.decompressedLimitBytes };
}
