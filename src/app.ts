import { buildEdge, buildSnapshot } from "./build-snapshot.ts";
import type { Config } from "./config/config.ts";
import { loadPepper } from "./config/pepper.ts";
import { systemClock, type Clock } from "./domain/clock.ts";
import { randomBase62, type RandomBytes } from "./domain/base62.ts";
import { createRequestId } from "./domain/request-id.ts";
import { CorsPolicy } from "./http/cors.ts";
import type { DispatchOptions, EdgeSettings } from "./http/dispatch.ts";
import type { Listener } from "./http/listen.ts";
import { RouteTable } from "./http/route-table.ts";
import { UsageQueue } from "./ledger/usage-queue.ts";
import { createAuthenticate, createKeyDigest } from "./pipeline/authenticate.ts";
import { canConnect } from "./pipeline/connect-probe.ts";
import { TokenEstimator } from "./pipeline/estimate.ts";
import { ImageMemory, imageMemoryBytes } from "./pipeline/image-memory.ts";
import { untilFree } from "./pipeline/in-flight.ts";
import { KeyRing } from "./pipeline/key-ring.ts";
import { findStrandedKeys } from "./pipeline/stranded-keys.ts";
import { resolveHost } from "./pipeline/resolve-host.ts";
import type { PipelineServices } from "./pipeline/services.ts";
import type { Snapshot } from "./pipeline/snapshot.ts";
import { adminRoutes, dataRoutes } from "./routes.ts";
import { startListener, type ListenerParts } from "./start-listener.ts";
import { createMemoryLimitStore } from "./storage/memory/limit-store.ts";
import { openDatabase } from "./storage/sqlite/open-database.ts";
import { SqliteKeyStore } from "./storage/sqlite/key-store.ts";
import { SqliteUsageStore } from "./storage/sqlite/usage-store.ts";
import type { KeyStore, LimitStore, UsageStore } from "./storage/store.ts";
import type { AdapterServices } from "./upstreams/adapter.ts";
import { TelemetryEvents } from "./telemetry/events.ts";
import { createLogger } from "./telemetry/logger.ts";
import { Metrics } from "./telemetry/metrics.ts";

/** What tests and simulations put in the place of the real thing. */
export interface AppOverrides {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly randomBytes?: RandomBytes;
  readonly limits?: LimitStore;
  readonly resolveHost?: PipelineServices["resolveHost"];
  readonly writeLog?: (line: string) => void;
}

export interface App extends AsyncDisposable {
  readonly dataUrl: string;
  readonly adminUrl: string;
  readonly events: TelemetryEvents;
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  /** Swaps in a configuration that was validated. Listeners and storage stay as they are. */
  reconfigure(config: Config): void;
  /** Reads the keys again, after this process has changed them. */
  reloadKeys(): Promise<void>;
  /** Writes what the ledger still holds in memory. */
  flushUsage(): Promise<void>;
  /** Refuses new work and waits for open requests, at most the drain time. */
  drain(): Promise<void>;
}

/** The database is used on the way of every call: better to try again than to wait for a writer. */
const busyTimeoutMs = 10;
/** Every call ends long before; a reservation is settled or ages out of its window anyway. */
const reservationTtlMs = 24 * 3_600_000;
const keyPollMs = 500;
const scopeLimit = 1_000_000;
const pollWhileDrainingMs = 20;

/** The only wiring: opens storage, loads the keys and listens. Throws when any of it fails. */
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
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  #config: Config;
  #edge: EdgeSettings;
  readonly #clock: Clock;
  readonly #randomBytes: RandomBytes;
  readonly #metrics: Metrics;
  readonly #keyRing: KeyRing;
  readonly #queue: UsageQueue;
  readonly #services: PipelineServices;
  readonly #closeDatabase: () => void;
  readonly #authenticate: DispatchOptions["authenticate"];
  readonly #whyNotReady = (): string | undefined => {
    if (this.#isDraining) return "shutting down";
    if (!this.#keyRing.isLoaded) return "keys are not loaded yet";
    return this.#queue.isFull ? "usage cannot be recorded" : undefined;
  };
  #snapshot: Snapshot;
  #data: Listener | undefined;
  #admin: Listener | undefined;
  #isDraining = false;
  #newPepperPath: string | undefined;

  constructor(config: Config, overrides: AppOverrides) {
    this.#config = config;
    this.#edge = buildEdge(config);
    this.#clock = overrides.clock ?? systemClock;
    this.#randomBytes = overrides.randomBytes ?? ((target) => crypto.getRandomValues(target));
    this.#metrics = this.#createMetrics();
    this.events = this.#createEvents(overrides);
    const database = openDatabase(config.storage.path, busyTimeoutMs);
    this.#closeDatabase = () => database.close();
    this.keys = new SqliteKeyStore(database);
    this.usage = new SqliteUsageStore(database);
    const onReloadFailed = (error: unknown): void => this.events.keysReloadFailed(error);
    this.#keyRing = new KeyRing({ store: this.keys, onReloadFailed });
    this.#queue = new UsageQueue({
      store: this.usage,
      ...config.ledger,
      onWriteFailed: (rows, error) => this.events.ledgerWriteFailed(rows, error),
    });
    this.#snapshot = buildSnapshot(config, this.#adapterServices);
    this.#services = this.#createServices(overrides);
    this.#authenticate = this.#createAuthenticate();
  }

  get dataUrl(): string {
    return this.#data?.url ?? "";
  }

  get adminUrl(): string {
    return this.#admin?.url ?? "";
  }

  async start(): Promise<void> {
    await this.#keyRing.reload();
    const { size } = this.#keyRing.secrets;
    if (this.#newPepperPath !== undefined && size > 0) {
      this.events.pepperLost(this.#newPepperPath, size);
    }
    this.#reportStrandedKeys();
    this.#keyRing.follow(keyPollMs);
    const { data, admin } = this.#config.listen;
    const parts = this.#listenerParts();
    this.#data = startListener({
      ...parts,
      address: data,
      routes: this.#dataTable(),
      edge: () => this.#edge,
    });
    // Pages on other origins have no business with metrics.
    const cors = new CorsPolicy([]);
    this.#admin = startListener({
      ...parts,
      address: admin,
      routes: this.#adminTable(),
      edge: () => ({ ...this.#edge, cors }),
    });
    this.events.started({ data: this.dataUrl, admin: this.adminUrl });
  }

  reconfigure(config: Config): void {
    const before = { config: this.#config, snapshot: this.#snapshot };
    this.#snapshot = buildSnapshot(config, this.#adapterServices, before);
    this.#config = config;
    this.#edge = buildEdge(config);
    this.#reportStrandedKeys();
  }

  reloadKeys(): Promise<void> {
    return this.#keyRing.reload();
  }

  flushUsage(): Promise<void> {
    return this.#queue.flush();
  }

  async drain(): Promise<void> {
    if (this.#isDraining || this.#data === undefined) return;
    this.#isDraining = true;
    this.events.draining(this.#data.pendingRequests);
    const deadline = performance.now() + this.#config.shutdown.drainTimeoutMs;
    while (this.#data.pendingRequests > 0 && performance.now() < deadline) {
      await Bun.sleep(pollWhileDrainingMs);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDraining = true;
    this.#keyRing.stop();
    // What is still open after the drain time is cut; its accounts are closed by the cut.
    await Promise.all([this.#data?.cut(), this.#admin?.cut()]);
    await untilFree(() => [...this.#snapshot.upstreams.values()].map((each) => each.inFlight));
    await this.#queue.close();
    this.#closeDatabase();
    if (this.#admin !== undefined) this.events.stopped();
  }

  #reportStrandedKeys(): void {
    const { plans, environments } = this.#config;
    const names = new Set(environments.map(({ name }) => name));
    for (const stranded of findStrandedKeys(this.#keyRing.secrets.values(), { plans, names })) {
      this.events.keysStranded(stranded.what, stranded.name, stranded.keys);
    }
  }

  #createMetrics(): Metrics {
    return new Metrics({
      openRequests: () => this.#data?.pendingRequests ?? 0,
      queuedUsageRows: () => this.#queue.size,
      residentBytes: () => process.memoryUsage.rss(),
    });
  }

  #createEvents(overrides: AppOverrides): TelemetryEvents {
    const { logLevel, logFormat, logsUpstreamMessages } = this.#config.telemetry;
    const write = overrides.writeLog ?? ((line) => void process.stderr.write(`${line}\n`));
    const logger = createLogger({ level: logLevel, format: logFormat, clock: this.#clock, write });
    return new TelemetryEvents({ logger, metrics: this.#metrics, logsUpstreamMessages });
  }

  #createServices(overrides: AppOverrides): PipelineServices {
    const clock = this.#clock;
    const random = overrides.random ?? Math.random;
    const { defaultOutputTokens } = this.#config.limits;
    return {
      clock,
      random,
      canConnect,
      imageMemory: new ImageMemory(imageMemoryBytes),
      resolveHost: overrides.resolveHost ?? resolveHost,
      limits:
        overrides.limits ?? createMemoryLimitStore({ clock, random, reservationTtlMs, scopeLimit }),
      estimator: new TokenEstimator({ defaultOutputTokens, nowMs: clock.monotonic() }),
      canRecord: () => !this.#queue.isFull,
      recordUsage: (record) => {
        this.#queue.record(record);
        this.events.callEnded(record);
      },
      onSettleFailed: (callId, error) => this.events.settleFailed(callId, error),
      onAttemptFailed: (call, candidate, failure) =>
        this.events.attemptFailed(call.id, candidate.target.id, failure),
    };
  }

  readonly #adapterServices = (upstream: string): AdapterServices => ({
    clock: this.#clock,
    newToolCallId: () => `call_${randomBase62(24, this.#randomBytes)}`,
    onTrouble: (what) => this.events.upstreamTrouble(upstream, what),
  });

  #createAuthenticate(): DispatchOptions["authenticate"] {
    const pepper = loadPepper({
      configured: this.#config.auth.pepper,
      dataDir: this.#config.dataDir,
      random: this.#randomBytes,
      onCreated: (path) => {
        this.#newPepperPath = path;
      },
    });
    return createAuthenticate({
      digest: createKeyDigest(pepper.reveal()),
      clock: this.#clock,
      secrets: () => this.#keyRing.secrets,
      plans: () => this.#snapshot.plans,
      onPlanMissing: (keyId, plan) => this.events.planMissing(keyId, plan),
    });
  }

  #dataTable(): RouteTable {
    const settings = (): Config["streams"] => this.#config.streams;
    return new RouteTable(
      dataRoutes({ services: this.#services, settings, whyNotReady: this.#whyNotReady }),
    );
  }

  #adminTable(): RouteTable {
    const renderMetrics = (): string => this.#metrics.render();
    return new RouteTable(adminRoutes({ renderMetrics, whyNotReady: this.#whyNotReady }));
  }

  #listenerParts(): ListenerParts {
    return {
      idleTimeoutMs: this.#config.http.idleTimeoutMs,
      events: this.events,
      clock: this.#clock,
      newRequestId: () => createRequestId(this.#clock.now(), this.#randomBytes),
      snapshot: () => this.#snapshot,
      authenticate: this.#authenticate,
      isDraining: () => this.#isDraining,
    };
  }
}
