import { readOwnProcess } from "./process/process-readings.ts";
import type { Config } from "./config/config.ts";
import { systemClock, type Clock } from "./domain/clock.ts";
import type { ProcessStatus } from "./domain/process-status.ts";
import { Shutdown } from "./edge/shutdown.ts";
import { ControlServer } from "./process/control/control-server.ts";
import type { App, AppOverrides } from "./process/wiring/app-interface.ts";
import { loadSharedLimits } from "./process/wiring/limits/load-shared-limits.ts";
import type { NewSharedLimits } from "./process/wiring/limits/shared-limit-store.ts";
import { DataServer } from "./process/worker/data-server.ts";
import type { AdminServices } from "./control/services.ts";
import type { TelemetryEvents } from "./telemetry/events/events.ts";
import type { SpoolWriter } from "./ledger/spool/spool-writer.ts";
import { openSpool } from "./process/wiring/ledger/open-spool.ts";
import { noLog } from "./telemetry/log/log-output.ts";
import { readCommit } from "./process/program-commit.ts";
import { createTelemetry, type Telemetry } from "./telemetry/telemetry.ts";

export type { App, AppOverrides } from "./process/wiring/app-interface.ts";

/** Builds the gateway: opens storage, loads the keys and listens. Throws when a step fails. */
export async function createApp(config: Config, overrides: AppOverrides = {}): Promise<App> {
  const app = new SingleProcess(config, overrides, await loadSharedLimits(config));
  try {
    await app.start();
  } catch (error) {
    await app[Symbol.asyncDispose]();
    throw error;
  }
  return app;
}

/** Control and a data server in one process, connected directly. */
class SingleProcess implements App {
  readonly #telemetry: Telemetry;
  readonly #shutdown = new Shutdown();
  readonly #control: ControlServer;
  readonly #ledger: SpoolWriter;
  readonly #data: DataServer;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #overrides: AppOverrides;
  #config: Config;
  #configuredAt: number;

  constructor(
    config: Config,
    overrides: AppOverrides,
    newSharedLimits: NewSharedLimits | undefined,
  ) {
    this.#config = config;
    this.#overrides = overrides;
    const { clock = systemClock } = overrides;
    this.#clock = clock;
    this.#startedAt = this.#configuredAt = clock.now();
    const randomBytes = overrides.randomBytes ?? ((target) => crypto.getRandomValues(target));
    const telemetry = (this.#telemetry = this.#createTelemetry(overrides));
    const shutdown = this.#shutdown;
    const shared = { config, telemetry, shutdown, clock, randomBytes };
    this.#control = new ControlServer({
      ...shared,
      pid: process.pid,
      onBootstrapToken: overrides.onBootstrapToken ?? ((): undefined => undefined),
      passwords: overrides.passwords,
      reloadKeys: () => this.#reloadKeys(),
      replica: () => ({
        configuredAt: this.#configuredAt,
        configText: undefined,
        keysEpoch: this.#data.facts.keysGeneration,
        workers: 1,
        notReady: this.#data.whyNotReady(),
        degraded: this.#data.facts.degraded,
      }),
      renderMetrics: () => telemetry.metrics.render(),
      whyNotReady: () => this.#data.whyNotReady(),
      howDegraded: () => this.#data.facts.degraded,
      countWaiting: () => this.#waitingRows,
      processes: () => [this.#status],
    });
    const { port: control, storage, installation } = this.#control;
    const { peppers } = installation;
    const whyNotReady = (): string | undefined => storage.whyNotReady();
    const ledger = (this.#ledger = openSpool({
      config,
      clock,
      number: 1,
      on: telemetry.ledger,
      direct: storage.usage,
      onBatch: () => storage.ingest.wake(),
    }));
    const parts = { control, ledger, peppers, overrides, whyNotReady, newSharedLimits };
    this.#data = new DataServer({ ...shared, ...parts });
  }

  get dataUrl(): string {
    return this.#data.url;
  }

  get adminUrl(): string {
    return this.#control.url;
  }

  get events(): TelemetryEvents {
    return this.#telemetry.events;
  }

  get admin(): AdminServices {
    return this.#control.admin;
  }

  async start(): Promise<void> {
    const { storage } = this.#control;
    await storage.open();
    await this.#data.start();
    await this.#control.listen();
    await this.#control.begin();
    const { configPath: config } = this.#overrides;
    this.events.started({ data: this.dataUrl, admin: this.adminUrl, config });
  }

  reconfigure(config: Config): void {
    this.#config = config;
    this.#configuredAt = this.#clock.now();
    this.#control.reconfigure(config);
    this.#data.reconfigure(config);
  }

  async flushUsage(): Promise<void> {
    await this.#ledger.maintain();
    await this.#control.storage.ingest.flush();
    await this.#ledger.maintain();
  }

  async drain({ isAnnounced = true } = {}): Promise<void> {
    if (this.#shutdown.hasBegun || this.dataUrl === "") return;
    this.events.draining(this.#data.openRequests);
    await this.#shutdown.drain({
      ...this.#config.shutdown,
      isAnnounced,
      openCalls: () => this.#data.openCalls,
      endCalls: () => this.#data.endCalls(),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#shutdown.refuse();
    await Promise.all([this.#data[Symbol.asyncDispose](), this.#control.cut()]);
    await this.#telemetry.traces.stop();
    await this.#control[Symbol.asyncDispose]();
  }

  get #status(): ProcessStatus {
    const { facts } = this.#data;
    return {
      role: "worker",
      number: 1,
      notReady: this.#data.whyNotReady(),
      facts: {
        ...facts,
        waitingRows: this.#waitingRows,
        droppedLogLines: (this.#overrides.log ?? noLog).droppedLines,
        startedAt: this.#startedAt,
        configuredAt: this.#configuredAt,
      },
    };
  }

  async #reloadKeys(): Promise<boolean> {
    await this.#data.reloadKeys();
    return true;
  }

  get #waitingRows(): number {
    const { ingest } = this.#control.storage;
    return this.#ledger.countWaiting(ingest.progressOf(this.#ledger.folder));
  }

  #createTelemetry({ clock = systemClock, log = noLog, version }: AppOverrides): Telemetry {
    const { logLevel: level, logFormat: format, ...settings } = this.#config.telemetry;
    return createTelemetry({
      ...settings,
      level,
      format,
      clock,
      log,
      programVersion: version,
      worker: "1",
      gauges: {
        openRequests: () => this.#data.openRequests,
        queuedUsageRows: () => this.#waitingRows,
        spoolBytes: () => this.#ledger.spoolBytes,
        keysAgeSeconds: () => this.#data.keysAgeMs / 1000,
        residentBytes: () => process.memoryUsage.rss(),
        version,
        commit: readCommit(),
        processes: () => [readOwnProcess("1")],
      },
    });
  }
}
