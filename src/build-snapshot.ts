import type { Config } from "./config/config.ts";
import type { Environment } from "./domain/model.ts";
import { InFlight } from "./pipeline/in-flight.ts";
import type { Snapshot, Upstream } from "./pipeline/snapshot.ts";
import type { AdapterServices } from "./upstreams/adapter.ts";
import { createAdapter } from "./upstreams/registry.ts";

/** Largest whole answer read from an upstream: 2048 vectors of 4096 numbers as JSON fit. */
const answerLimitBytes = 256 * 1024 * 1024;

/** Turns a valid configuration into what calls read. Nothing in it changes afterwards. */
export function buildSnapshot(config: Config, services: AdapterServices): Snapshot {
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
    upstreams: buildUpstreams(config, services),
    settings: { jsonDepth: config.http.jsonDepth, answerLimitBytes },
  };
}

function buildUpstreams(config: Config, services: AdapterServices): ReadonlyMap<string, Upstream> {
  const upstreams = new Map<string, Upstream>();
  for (const [name, settings] of config.upstreams) {
    upstreams.set(name, {
      name,
      adapter: createAdapter(settings, services),
      timeouts: settings.timeouts,
      inFlight: new InFlight(settings.maxInFlight),
    });
  }
  return upstreams;
}
