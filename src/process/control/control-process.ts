import { readOwnProcess, readProcess } from "../process-readings.ts";
import { LoopMeter } from "../../admission/overload/loop-meter.ts";
import type { Config } from "../../config/config.ts";
import type { AdminServices } from "../../control/services.ts";
import { systemClock } from "../../domain/clock.ts";
import { joinLacks, type ProcessStatus } from "../../domain/process-status.ts";
import type { PortUse } from "../../edge/listen.ts";
import { Shutdown } from "../../edge/shutdown.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import { mergePages } from "../../telemetry/metrics/merge-pages.ts";
import { createTelemetry, type Telemetry } from "../../telemetry/telemetry.ts";
import type { ConfigFeed } from "../link/messages.ts";
import type { AppOverrides } from "../wiring/app-interface.ts";
import { readCommit } from "../program-commit.ts";
import { ownFacts } from "../own-facts.ts";
import type { Door } from "../wiring/door.ts";
import { ControlServer, type ControlServerOptions } from "./control-server.ts";
import { WorkerLinks } from "./worker-links.ts";

export interface ControlProcessOptions {
  readonly config: Config;
  /** The text from which workers parse the same configuration. */
  readonly feed: Omit<ConfigFeed, "generation">;
  /** Path of the socket for workers. */
  readonly socket: string;
  readonly log: LogSink;
  readonly shownToken?: ControlServerOptions["shownToken"];
  readonly onBootstrapToken: ControlServerOptions["onBootstrapToken"];
  readonly portUse?: PortUse;
  /** A listener that is already open at the admin address. */
  readonly door?: Door | undefined;
  readonly overrides?: AppOverrides;
}

/** How long control waits beyond the drain time for workers that are asked to end. */
const lastWorkersMs = 10_000;
const pollMs = 20;

/** The process that manages a gateway whose workers are separate processes. */
export class ControlProcess implements AsyncDisposable {
  readonly #telemetry: Telemetry;
  readonly #shutdown = new Shutdown();
  readonly #startedAt = systemClock.now();
  readonly #loop = new LoopMeter(systemClock);
  readonly #server: ControlServer;
  readonly #workers: WorkerLinks;
  readonly #serving = Promise.withResolvers<string>();
  readonly #log: Pick<LogSink, "droppedLines">;
  #config: Config;
  #feed: ConfigFeed;
  #hasBegun = false;

  /** Throws if another process is using the data directory. */
  constructor(options: ControlProcessOptions) {
    const { config, feed, socket, log, overrides = {}, ...bootstrap } = options;
    const { clock = systemClock, passwords } = overrides;
    this.#config = config;
    this.#log = log;
    this.#feed = { ...feed, generation: systemClock.now() };
    const telemetry = (this.#telemetry = this.#createTelemetry(log, overrides.version));
    telemetry.metrics.measureDelay(() => this.#loop.longestMs);
    this.#server = new ControlServer({
      config,
      pid: process.ppid,
      telemetry,
      shutdown: this.#shutdown,
      clock,
      passwords,
      randomBytes: (target) => crypto.getRandomValues(target),
      ...bootstrap,
      reloadKeys: () => this.#reloadKeys(),
      replica: () => ({
        configuredAt: this.#feed.generation,
        configText: this.#feed.text,
        keysEpoch: this.#workers.appliedEpoch(this.#config.processes),
        workers: this.#config.processes,
        notReady: this.#whyNotReady(),
        degraded: this.#howDegraded(),
      }),
      renderMetrics: async () =>
        mergePages([telemetry.metrics.render(), await this.#workers.metrics()]),
      whyNotReady: () => this.#whyNotReady(),
      howDegraded: () => this.#howDegraded(),
      processes: () => [this.#status, ...this.#workers.statuses(this.#config.processes)],
      countWaiting: () => this.#workers.states.reduce((sum, state) => sum + state.waitingRows, 0),
    });
    const { port, storage } = this.#server;
    this.#workers = new WorkerLinks({
      path: socket,
      clock: systemClock,
      startedAt: this.#startedAt,
      port,
      usage: storage.usage,
      config: () => this.#feed,
      ingest: storage.ingest,
      whyNotReady: () => storage.whyNotReady(),
      onKeysRead: () => this.#begin(),
      onState: () => this.#lookForWorker(),
    });
  }

  get adminUrl(): string {
    return this.#server.url;
  }

  get admin(): AdminServices {
    return this.#server.admin;
  }

  get events(): TelemetryEvents {
    return this.#telemetry.events;
  }

  /** Resolves to the URL of the data listener, once a worker serves there. */
  get serving(): Promise<string> {
    return this.#serving.promise;
  }

  async start(): Promise<void> {
    this.#loop.start();
    await this.#server.storage.open();
    this.#workers.listen();
    await this.#server.listen();
  }

  /** Applies a validated configuration here and in all workers. */
  reconfigure(config: Config, text: string): void {
    this.#config = config;
    this.#feed = { ...this.#feed, text, generation: systemClock.now() };
    this.#server.reconfigure(config);
    this.#workers.configChanged(this.#feed);
  }

  /** Lets open requests end, while a successor waits for the data directory. */
  leave(): Promise<void> {
    this.#workers.replaced();
    return this.#server.leave();
  }

  /** Stores all usage that the workers have written to their spools. */
  async flushUsage(): Promise<void> {
    await this.#server.storage.ingest.flush();
  }

  /** Waits until the workers have left; they are asked to end too. */
  async drain({ isAnnounced }: { readonly isAnnounced: boolean }): Promise<void> {
    const { preStopMs, drainTimeoutMs } = this.#config.shutdown;
    const deadline = performance.now() + preStopMs + drainTimeoutMs + lastWorkersMs;
    void this.#shutdown.drain({
      isAnnounced,
      preStopMs,
      drainTimeoutMs: 0,
      openCalls: () => 0,
      endCalls: () => undefined,
    });
    while (this.#workers.count > 0 && performance.now() < deadline) await Bun.sleep(pollMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#loop.stop();
    this.#shutdown.refuse();
    await this.#server.cut();
    this.#workers.stop();
    await this.#server[Symbol.asyncDispose]();
  }

  async #reloadKeys(): Promise<boolean> {
    const hasReloaded = await this.#workers.reloadKeys();
    const isComplete = this.#workers.appliedEpoch(this.#config.processes) !== undefined;
    return hasReloaded && isComplete;
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    void this.#server.begin();
  }

  #lookForWorker(): void {
    const url = this.#workers.states.find((state) => state.url !== "")?.url;
    if (url !== undefined) this.#serving.resolve(url);
  }

  get #status(): ProcessStatus {
    return {
      role: "control",
      number: undefined,
      notReady: this.#server.storage.whyNotReady(),
      facts: {
        ...ownFacts(this.#loop),
        startedAt: this.#startedAt,
        waitingRows: undefined,
        droppedLogLines: this.#log.droppedLines,
        keysGeneration: this.#workers.keysGeneration,
        configuredAt: this.#feed.generation,
      },
    };
  }

  #whyNotReady(): string | undefined {
    if (this.#shutdown.hasBegun) return "shutting down";
    const ofStorage = this.#server.storage.whyNotReady();
    if (ofStorage !== undefined) return ofStorage;
    const { states } = this.#workers;
    if (states.some(({ notReady }) => notReady === undefined)) return undefined;
    return states[0]?.notReady ?? "no worker serves";
  }

  #howDegraded(): string | undefined {
    return joinLacks(this.#workers.states.map(({ degraded }) => degraded));
  }

  #createTelemetry(log: LogSink, version: string | undefined): Telemetry {
    const { logLevel: level, logFormat: format, ...settings } = this.#config.telemetry;
    return createTelemetry({
      ...settings,
      level,
      format,
      clock: systemClock,
      log,
      worker: "control",
      programVersion: version,
      gauges: {
        residentBytes: () => process.memoryUsage.rss(),
        // Each worker reports its own.
        spoolBytes: () => this.#server.storage.ingest.leftBytes,
        version,
        commit: readCommit(),
        processes: () => [
          readOwnProcess("control"),
          ...[readProcess(process.ppid, "supervisor")].filter((reading) => reading !== undefined),
        ],
      },
    });
  }
}
