import { adminApiRoutes } from "../../control/admin-routes.ts";
import { adminOperations } from "../../control/operations.ts";
import type { AdminServices, Platform, PlatformPool } from "../../control/services.ts";
import { createAdminGate } from "../../control/sign-in/admin-gate.ts";
import { Bootstrap, type BootstrapOptions } from "../../control/sign-in/bootstrap/bootstrap.ts";
import { LocalAccess } from "../../control/sign-in/bootstrap/local-access.ts";
import { Passwords } from "../../control/sign-in/guard/passwords.ts";
import type { SignInServices } from "../../control/sign-in/services.ts";
import { signInRoutes } from "../../control/sign-in/routes.ts";
import type { Config } from "../../config/config.ts";
import { configWarnings, type WarnedParts } from "../../config/problems/warnings.ts";
import type { Pool } from "../../domain/limits/capacity.ts";
import { createHostList, type HostList, loopbackHosts } from "../../domain/network.ts";
import type { AdminGate } from "../../edge/dispatch/dispatch-options.ts";
import type { Route } from "../../edge/dispatch/route.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

export interface AdminPlaneOptions {
  readonly config: Pick<Config, WarnedParts | "dataDir">;
  readonly services: AdminServices;
  /** The process whose end ends the gateway. */
  readonly pid: number;
  readonly events: TelemetryEvents;
  readonly passwords?: Passwords | undefined;
  readonly onBootstrapToken: BootstrapOptions["onBootstrapToken"];
}

/** Delay before retrying what the database, or a full disk, does not allow. */
const retryMs = 1_000;

/** Access control and routes of the admin listener. */
export class AdminPlane {
  readonly gate: AdminGate;
  readonly routes: readonly Route[];
  readonly #options: AdminPlaneOptions;
  readonly #bootstrap: Bootstrap;
  #url = "";
  readonly #local: LocalAccess;
  readonly #retries = new Set<ReturnType<typeof setTimeout>>();
  #isStopped = false;

  constructor(options: AdminPlaneOptions) {
    this.#options = options;
    const { config, services, onBootstrapToken } = options;
    const { store, clock, random } = services;
    const { dataDir } = config;
    this.#local = new LocalAccess({ dataDir, pid: options.pid, random });
    const token = config.admin.bootstrapToken;
    const hosts = adminHosts(config);
    this.#bootstrap = new Bootstrap({ store, clock, random, token, onBootstrapToken });
    this.gate = createAdminGate({
      ...services,
      settings: config.admin,
      publicUrl: () => this.#publicUrl(),
      isOwnHost: (host) => hosts.has(host),
      isLocalToken: (text) => this.#local.isToken(text),
    });
    const signIn = this.#signInServices();
    this.routes = [
      ...adminApiRoutes(services, adminOperations({ ...services, ...signIn })),
      ...signInRoutes(signIn),
    ];
  }

  /** Called once the listener has its address. */
  async start(url: string): Promise<void> {
    this.#url = url;
    const { config, services, events } = this.#options;
    const warnings = configWarnings(config, services.clock.now());
    for (const warning of warnings) events.configNotice(warning);
    const startedAt = services.clock.now();
    // Without the file, or with that of a process that has ended, no command reaches the gateway.
    await this.#untilDone(
      () => this.#local.write({ url, startedAt }),
      (error) => events.localAccessFailed(error),
    );
  }

  /**
   * Announces how the first operator signs up, once the database can be read: its pollers report an
   * outage.
   */
  startBootstrap(): Promise<void> {
    return this.#untilDone(() => this.#bootstrap.start());
  }

  /** Tries once, and then each second until it works. `onFailed`: called the first time. */
  async #untilDone(work: () => Promise<void>, onFailed?: (error: unknown) => void): Promise<void> {
    try {
      await work();
    } catch (error) {
      onFailed?.(error);
      if (this.#isStopped) return;
      const retry = setTimeout(() => {
        this.#retries.delete(retry);
        void this.#untilDone(work);
      }, retryMs);
      this.#retries.add(retry);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const retry of this.#retries) clearTimeout(retry);
    await this.#local.remove().catch(() => undefined);
  }

  #publicUrl(): string {
    return this.#options.config.admin.publicUrl ?? this.#url;
  }

  #signInServices(): SignInServices {
    const { config, services, events, passwords = new Passwords() } = this.#options;
    return {
      ...services,
      settings: config.admin,
      publicUrl: () => this.#publicUrl(),
      passwords,
      bootstrap: this.#bootstrap,
      onSignInRefused: ({ requestId: id, address, how, reason }) =>
        events.signInRefused({ id, address, how, reason }),
    };
  }
}

/** Host names set by the operator and those of the listener itself. */
function adminHosts({ admin, listen }: AdminPlaneOptions["config"]): HostList {
  const publicHosts = admin.publicUrl === undefined ? [] : [new URL(admin.publicUrl).hostname];
  return createHostList([...loopbackHosts, listen.admin.hostname, ...publicHosts, ...admin.hosts]);
}

/** The part of the configuration that the control plane uses. */
export function platformOf({
  environments,
  plans,
  pools,
}: Pick<Config, "environments" | "plans" | "pools">): Platform {
  return {
    plans,
    pools: new Map([...pools].map(([name, pool]) => [name, platformPool(pool, environments)])),
    environments: environments.map(({ name, hosts, models }) => ({
      name,
      hosts,
      models: [...models.values()],
    })),
  };
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
