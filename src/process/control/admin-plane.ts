import { adminApiRoutes, type StreamRoute } from "../../control/admin-routes.ts";
import { consoleRoutes } from "../../control/console/console.ts";
import { LiveHub } from "../../control/live/live-hub.ts";
import { liveDescription, watchLive } from "../../control/live/live-route.ts";
import { playgroundRoutes } from "../../control/playground/playground.ts";
import { adminOperations } from "../../control/operations.ts";
import type { AdminServices, Platform, PlatformPool } from "../../control/services.ts";
import { createAdminGate } from "../../control/sign-in/admin-gate.ts";
import { Bootstrap, type BootstrapOptions } from "../../control/sign-in/bootstrap/bootstrap.ts";
import { LocalAccess } from "../../control/sign-in/bootstrap/local-access.ts";
import { Passwords } from "../../control/sign-in/guard/passwords.ts";
import type { SignInServices } from "../../control/sign-in/services.ts";
import { signInRoutes } from "../../control/sign-in/routes.ts";
import type { Config, ListenAddress } from "../../config/config.ts";
import type { Pool } from "../../domain/limits/capacity.ts";
import { addressUrl, createHostList, isLoopback, loopbackHosts } from "../../domain/network.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";
import { createTickets } from "./tickets.ts";

export interface AdminPlaneOptions extends Pick<BootstrapOptions, "onBootstrapToken"> {
  readonly config: Pick<Config, "dataDir" | "admin" | "listen">;
  readonly services: AdminServices;
  /** The process whose end ends the gateway. */
  readonly pid: number;
  /** Of this process among those of the machine. */
  readonly number: number;
  readonly events: Pick<TelemetryEvents, "signInRefused">;
  readonly passwords?: Passwords | undefined;
  /** Where browsers reach the listener. */
  readonly publicUrl: () => string;
}

/** Access control and routes of the admin listener, its local token, and the first operator's. */
export function createAdminPlane(options: AdminPlaneOptions) {
  const { config, services, pid, events, passwords = new Passwords() } = options;
  const { onBootstrapToken, publicUrl, number } = options;
  const { store, clock, random } = services;
  const { dataDir, admin: settings, listen } = config;
  const { hostname } = listen.admin;
  const publicHosts =
    settings.publicUrl === undefined ? [] : [new URL(settings.publicUrl).hostname];
  const inside = createHostList([...loopbackHosts, hostname, ...settings.hosts]);
  const outside = createHostList(publicHosts);
  const local = new LocalAccess({ dataDir, pid, random });
  const token = settings.bootstrapToken;
  const bootstrap = new Bootstrap({ store, clock, random, token, onBootstrapToken });
  const gate = createAdminGate({
    ...services,
    settings,
    publicUrl,
    isOwnHost: (host) => inside.has(host) || outside.has(host),
    isInside: (host) => inside.has(host),
    isLocalToken: (text) => local.isToken(text),
  });
  const signIn = {
    ...services,
    settings,
    publicUrl,
    passwords,
    bootstrap,
    onSignInRefused: ({ requestId: id, ...refusal }) => events.signInRefused({ id, ...refusal }),
  } satisfies SignInServices;
  const live = new LiveHub(services);
  const tickets = createTickets({ dataDir, number, random });
  const watch: StreamRoute = {
    description: liveDescription,
    isPassive: true,
    handle: (call, query) => watchLive({ call, query }, live, services),
  };
  const streams = [watch, ...playgroundRoutes(services, tickets.callAsKey)];
  const routes = [
    ...consoleRoutes(dataDir, clock),
    ...adminApiRoutes(services, adminOperations({ ...services, ...signIn }), streams),
    ...signInRoutes(signIn),
  ];
  return { gate, routes, local, bootstrap, live, ticketDigest: tickets.digest };
}

/** The part of the configuration that the control plane uses. */
export function platformOf({
  environments,
  plans,
  pools,
  listen,
  endUsers,
}: Pick<Config, "environments" | "plans" | "pools" | "listen" | "endUsers">): Platform {
  return {
    plans,
    endUsers,
    pools: new Map([...pools].map(([name, pool]) => [name, platformPool(pool, environments)])),
    environments: environments.map(({ name, hosts, models }) => ({
      name,
      hosts,
      baseUrl: baseUrlOf(hosts, listen.data),
      models: [...models.values()],
    })),
  };
}

/** Such as `0.0.0.0` and `[::]`: all addresses of the machine, and none that clients use. */
const unspecified = /^(?:0\.0\.0\.0|\[?[0:]+\]?)$/;

/** Where clients reach an environment: a host of its own is behind a proxy with TLS. */
function baseUrlOf(
  hosts: readonly string[],
  { hostname, port }: ListenAddress,
): string | undefined {
  const own = hosts.find((name) => !name.includes("*"));
  const host = own ?? hostname;
  if (unspecified.test(host)) return undefined;
  if (own !== undefined && !isLoopback(own)) return `https://${own}/v1`;
  const plain = host.replaceAll(/[[\]]/g, "");
  return port === 0 ? undefined : `${addressUrl({ hostname: plain, port })}/v1`;
}

function platformPool(pool: Pool, environments: Config["environments"]): PlatformPool {
  const models: PlatformPool["models"][number][] = [];
  const targets = new Set<string>();
  for (const { name: environment, models: offered } of environments) {
    for (const model of offered.values()) {
      const own = model.targets.filter((target) => target.pool === pool.name);
      if (own.length > 0) models.push({ environment, alias: model.alias });
      for (const { id } of own) targets.add(id);
    }
  }
  return { ...pool, models, targets: [...targets] };
}
