import type { AdminServices } from "./control/services.ts";
import { RepeatableCalls } from "./idempotency/repeatable-calls.ts";
import { followConfig } from "./process/wiring/build-routing.ts";
import type { App, AppOverrides } from "./process/wiring/app-interface.ts";
import { buildServices, type BuiltServices } from "./process/wiring/build-services.ts";
import { buildHooks } from "./process/wiring/build-hooks.ts";
import {
  buildApiSettings,
  buildEdge,
  buildSnapshot,
  type Replaced,
} from "./process/wiring/build-snapshot.ts";
import type { Config } from "./config/config.ts";
import { ControlPlane, platformOf } from "./process/wiring/control-plane.ts";
import { systemClock, type Clock } from "./domain/clock.ts";
import { randomBase62, type RandomBytes } from "./domain/keys/base62.ts";
import { createRequestId } from "./domain/request-id.ts";
import { CorsPolicy } from "./edge/cors.ts";
import type { DispatchOptions, EdgeSettings } from "./edge/dispatch/dispatch-options.ts";
import { draining } from "./edge/replies/edge-refusal.ts";
import type { Listener } from "./edge/listen.ts";
import { RouteTable } from "./edge/dispatch/route-table.ts";
import { Shutdown } from "./edge/shutdown.ts";
import { Installation } from "./store/installation/installation.ts";
import { openStorage, type Storage } from "./process/wiring/open-storage.ts";
import { createAuthenticate } from "./keys/authenticate.ts";
import type { Peppers } from "./domain/keys/peppers.ts";
import { RefusalLog } from "./admission/refusals/refusal-log.ts";
import { RunningCalls } from "./call/running-calls.ts";
import type { CallHook } from "./snapshot/call-hooks.ts";
import type { Snapshot } from "./snapshot/snapshot.ts";
import { reportKeys } from "./process/wiring/report-keys.ts";
import { restoreWindows } from "./process/wiring/restore-windows.ts";
import { adminRoutes, dataRoutes } from "./routes.ts";
import { startListener, type ListenerParts } from "./process/wiring/start-listener.ts";
import type { AdapterServices } from "./upstreams/adapter.ts";
import type { TelemetryEvents } from "./telemetry/events/events.ts";
import { noLog } from "./telemetry/log/log-output.ts";
import { createTelemetry, type Telemetry } from "./telemetry/telemetry.ts";

export type { App, AppOverrides } from "./process/wiring/app-interface.ts";

/** Builds the gateway: opens storage, loads the keys and listens. Throws when a step fails. */
export async function createApp(config: Config, overrides: AppOverrides = {}): Promise<App> {
  const app = new RunningApp(config, overrides);
  try {
    await app.start();
  } catch (error) {
    await app[Symbol.asyncDispose]();
    throw error;
  }
  return app;
}

class RunningApp implements App {
  readonly events: TelemetryEvents;
  readonly admin: AdminServices;
  readonly #overrides: AppOverrides;
  #config: Config;
  #edge: EdgeSettings;
  readonly #clock: Clock;
  readonly #randomBytes: RandomBytes;
  readonly #telemetry: Telemetry;
  readonly #storage: Storage;
  readonly #refusals = new RefusalLog();
  readonly #running: RunningCalls;
  readonly #services: BuiltServices;
  readonly #peppers: Peppers;
  readonly #control: ControlPlane;
  readonly #hooks: readonly CallHook[];
  #snapshot: Snapshot;
  #repeatable: RepeatableCalls | undefined;
  #data: Listener | undefined;
  #admin: Listener | undefined;
  readonly #shutdown = new Shutdown();

  constructor(config: Config, overrides: AppOverrides) {
    this.#overrides = overrides;
    this.#config = config;
    this.#edge = buildEdge(config);
    this.#clock = overrides.clock ?? systemClock;
    this.#randomBytes = overrides.randomBytes ?? ((target) => crypto.getRandomValues(target));
    this.#telemetry = this.#createTelemetry();
    const telemetry = this.#telemetry;
    const events = (this.events = telemetry.events);
    const owner = new Installation(config, { random: this.#randomBytes, clock: this.#clock });
    this.#peppers = owner.peppers;
    const clock = this.#clock;
    const running = new RunningCalls(
      (keyId) => this.#storage.keyRing.isLive(keyId),
      (publicId) => this.#storage.keyRing.findEnded(publicId),
      clock,
    );
    const onKeysChanged = (): void => {
      running.endStale();
      this.#services.capacity.unitsChanged();
    };
    this.#running = running;
    const settings = (): Config => this.#config;
    this.#storage = openStorage({ settings, clock, owner, telemetry, onKeysChanged });
    this.#hooks = overrides.hooks ?? [];
    this.#snapshot = this.#makeSnapshot(config);
    const parts = { config, clock, events, running, refusals: this.#refusals };
    this.#services = buildServices({
      ...overrides,
      ...parts,
      ledger: this.#storage.ledger,
      routing: () => this.#config.routing,
      routingEvents: telemetry.routing,
      units: this.#storage.keyRing,
      overload: {
        settings: () => this.#config.overload,
        callsUnderWay: () => this.#data?.pendingRequests ?? 0,
        events: telemetry.overload,
      },
    });
    this.#followConfig();
    telemetry.metrics.capacity.follow(() => this.#services.capacity.views());
    this.admin = this.#createAdminServices();
    const onBootstrapToken = overrides.onBootstrapToken ?? ((): undefined => undefined);
    const { passwords } = overrides;
    const services = this.admin;
    this.#control = new ControlPlane({ config, services, events, passwords, onBootstrapToken });
  }

  get dataUrl(): string {
    return this.#data?.url ?? "";
  }

  get adminUrl(): string {
    return this.#admin?.url ?? "";
  }

  async start(): Promise<void> {
    await this.#storage.start();
    await restoreWindows({ ...this.#services, ...this.#storage, plans: this.#snapshot.plans });
    reportKeys(this.#config, this.#storage.keyRing, this.events);
    const { data, admin } = this.#config.listen;
    const parts = this.#listenerParts();
    const edge = (): EdgeSettings => this.#edge;
    const { overload, count } = this.#services;
    const ofData = { address: data, routes: this.#dataTable(), edge, count, overload };
    this.#data = startListener({ ...parts, ...ofData });
    overload.start();
    // Pages of other origins must not use the control plane.
    const cors = new CorsPolicy([]);
    this.#admin = startListener({
      ...parts,
      address: admin,
      routes: this.#adminTable(),
      gate: this.#control.gate,
      edge: () => ({ ...this.#edge, cors }),
    });
    await this.#control.start(this.adminUrl);
    this.events.started({ data: this.dataUrl, admin: this.adminUrl });
  }

  reconfigure(config: Config): void {
    const before = { config: this.#config, snapshot: this.#snapshot };
    this.#snapshot = this.#makeSnapshot(config, before);
    this.#config = config;
    this.#edge = buildEdge(config);
    this.#followConfig();
    reportKeys(this.#config, this.#storage.keyRing, this.events);
  }

  #makeSnapshot(config: Config, before?: Replaced): Snapshot {
    const hooks = [...buildHooks(config, this.events), ...this.#hooks];
    return buildSnapshot(config, { services: this.#adapterServices, hooks }, before);
  }

  #followConfig(): void {
    const { routing: events } = this.#telemetry;
    followConfig(this.#services, { config: this.#config, snapshot: this.#snapshot, events });
  }

  flushUsage(): Promise<void> {
    return this.#storage.ledger.flush();
  }

  async drain({ isAnnounced = true } = {}): Promise<void> {
    if (this.#shutdown.hasBegun || this.#data === undefined) return;
    this.events.draining(this.#data.pendingRequests);
    const calls = { openCalls: this.#openCalls, endCalls: () => this.#running.endAll(draining) };
    await this.#shutdown.drain({ ...this.#config.shutdown, isAnnounced, ...calls });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#shutdown.refuse();
    this.#services.overload.stop();
    // Open calls are ended and cut, which settles them.
    this.#running.endAll(draining);
    await Promise.all([this.#data?.cut(), this.#admin?.cut()]);
    await this.#shutdown.settle(() => this.#running.size);
    await this.#control.stop();
    await this.#repeatable?.close();
    await this.#storage.close();
    if (this.#admin !== undefined) this.events.stopped();
  }

  readonly #openCalls = () => Math.max(this.#data?.pendingRequests ?? 0, this.#running.size);

  readonly #whyNotReady = (): string | undefined =>
    this.#shutdown.hasBegun ? "shutting down" : this.#storage.whyNotReady();

  #createTelemetry(): Telemetry {
    const { logLevel: level, logFormat: format, ...settings } = this.#config.telemetry;
    return createTelemetry({
      ...settings,
      level,
      format,
      clock: this.#clock,
      log: this.#overrides.log ?? noLog,
      gauges: {
        openRequests: () => this.#data?.pendingRequests ?? 0,
        queuedUsageRows: () => this.#storage.ledger.waiting,
        spoolBytes: () => this.#storage.ledger.spoolBytes,
        keysAgeSeconds: () => this.#storage.keyRing.ageMs / 1000,
        residentBytes: () => process.memoryUsage.rss(),
      },
    });
  }

  readonly #adapterServices = (upstream: string): AdapterServices => ({
    clock: this.#clock,
    newToolCallId: () => `call_${randomBase62(24, this.#randomBytes)}`,
    onTrouble: (what) => this.events.upstreamTrouble(upstream, what),
  });

  #createAdminServices(): AdminServices {
    const { control: store, reports, usage } = this.#storage;
    return {
      store,
      reports,
      usage,
      refusals: this.#refusals,
      clock: this.#clock,
      random: this.#randomBytes,
      peppers: this.#peppers,
      auditKeptMs: this.#config.retention.auditMs,
      revokesLeaks: this.#config.admin.leakReports.revoke,
      onLeaksReported: (summary) => this.events.leaksReported(summary),
      platform: () => platformOf(this.#config),
      lastUse: (publicId) => this.#storage.lastUse.of(publicId),
      onKeysChanged: () => this.#storage.keyRing.reload(),
    };
  }

  #createAuthenticate(): DispatchOptions["authenticate"] {
    return (form) =>
      createAuthenticate({
        form,
        peppers: this.#peppers,
        clock: this.#clock,
        secrets: this.#storage.keyRing,
        snapshotMaxAgeMs: this.#config.auth.snapshotMaxAgeMs,
        plans: () => this.#snapshot.plans,
        onUsed: (publicId, at) => this.#storage.lastUse.note(publicId, at),
        onOutdated: (secret) => this.#storage.renewal.note(secret),
        onPlanMissing: (keyId, plan) => this.events.planMissing(keyId, plan),
      });
  }

  #dataTable(): RouteTable {
    this.#repeatable = new RepeatableCalls({
      ...this.#services,
      store: this.#storage.replies,
      peppers: this.#peppers,
      random: this.#randomBytes,
      settings: () => this.#config.idempotency,
      onAnswer: this.#telemetry.metrics.idempotency.counted,
    });
    const settings = () => buildApiSettings(this.#config);
    const parts = { services: this.#services, settings, sharing: this.#repeatable };
    const more = { surfaces: this.#overrides.surfaces, whyNotReady: this.#whyNotReady };
    return new RouteTable(dataRoutes({ ...parts, ...more }));
  }

  #adminTable(): RouteTable {
    const renderMetrics = (): string => this.#telemetry.metrics.render();
    const parts = { renderMetrics, whyNotReady: this.#whyNotReady };
    return new RouteTable(adminRoutes({ ...parts, control: this.#control.routes }), "admin");
  }

  #listenerParts(): ListenerParts {
    return {
      idleTimeoutMs: this.#config.http.idleTimeoutMs,
      events: this.events,
      refusals: this.#refusals,
      clock: this.#clock,
      newRequestId: () => createRequestId(this.#clock.now(), this.#randomBytes),
      snapshot: () => this.#snapshot,
      authenticate: this.#createAuthenticate(),
      sharesPort: this.#config.workers > 1,
      shutdown: this.#shutdown,
    };
  }
}
