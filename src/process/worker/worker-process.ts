import packageJson from "../../../package.json" with { type: "json" };
import { readOwnProcess } from "../process-readings.ts";
import type { Config } from "../../config/config.ts";
import { systemClock } from "../../domain/clock.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import type { PortUse } from "../../edge/listen.ts";
import { Shutdown } from "../../edge/shutdown.ts";
import type { SpoolWriter } from "../../ledger/spool/spool-writer.ts";
import { Installation } from "../../store/installation/installation.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import { createTelemetry, type Telemetry } from "../../telemetry/telemetry.ts";
import type { AppOverrides } from "../wiring/app-interface.ts";
import type { LinkLost } from "../link/link-errors.ts";
import type { ConfigFeed, ControlState, WorkerState } from "../link/messages.ts";
import { ownFacts } from "../own-facts.ts";
import { openSpool } from "../wiring/ledger/open-spool.ts";
import { loadSharedLimits } from "../wiring/limits/load-shared-limits.ts";
import { ControlOutage } from "./control-outage.ts";
import { ControlLink } from "./control-link.ts";
import { DataServer } from "./data-server.ts";
import { partOfConfig } from "./part-of-config.ts";

export interface WorkerProcessOptions {
  /** Number of the worker, from 1. */
  readonly number: number;
  /** Path of the socket on which control listens. */
  readonly socket: string;
  readonly log: LogSink;
  readonly portUse?: PortUse;
  /** Parses the configuration of a feed, given the one in force; undefined if that fails here. */
  readonly configOf: (feed: ConfigFeed, current: Config | undefined) => Config | undefined;
  readonly overrides?: AppOverrides;
}

/** How much later than configured the runtime may close idle connections. */
const idleSlackMs = 8_000;

const randomBytes: RandomBytes = (target) => crypto.getRandomValues(target);

/** The process that serves calls; it never opens the database. */
export class WorkerProcess implements AsyncDisposable {
  readonly #options: WorkerProcessOptions;
  readonly #shutdown = new Shutdown();
  readonly #control: ControlLink;
  readonly #startedAt = systemClock.now();
  readonly #outage = new ControlOutage({
    clock: systemClock,
    events: () => this.#parts?.telemetry.events,
  });
  #generation = 0;
  /** The state that control last reported. */
  #controlState: ControlState = { notReady: undefined, stored: { segment: 0, closes: 0 } };
  #parts: WorkerParts | undefined;

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
    this.#control = new ControlLink({
      number: options.number,
      path: options.socket,
      clock: systemClock,
      state: () => this.#state(),
      whyNotReady: () => this.#whyNotReady(),
      renderMetrics: () => this.#parts?.telemetry.metrics.render() ?? "",
      reloadKeys: () => this.#parts?.data.reloadKeys() ?? Promise.resolve(0),
      onState: (state) => {
        this.#controlState = state;
      },
      onConfig: (feed) => this.#reconfigure(feed),
      onLost: (reason, isReplaced) => this.#controlLost(reason, isReplaced),
      onBack: () => this.#outage.back(),
    });
  }

  get url(): string {
    return this.#parts?.data.url ?? "";
  }

  /** Resolves to the configuration in force, once control is available. */
  async readConfig(): Promise<WorkerConfig> {
    await this.#control.start();
    const feed = await this.#control.readConfig();
    const config = this.#options.configOf(feed, undefined);
    if (config === undefined) throw new Error("the configuration cannot be read by this process");
    this.#generation = feed.generation;
    return { config, text: feed.text };
  }

  /** Serves calls. Throws when the address is taken. */
  async start({ config, text }: WorkerConfig): Promise<void> {
    const { overrides = {} } = this.#options;
    const { clock = systemClock } = overrides;
    const telemetry = this.#createTelemetry(config);
    const installation = new Installation(config, { random: randomBytes, clock });
    const ledger = openSpool({
      config,
      clock,
      number: this.#options.number,
      on: telemetry.ledger,
      direct: { insert: (records) => this.#control.insert(records) },
      // Control reads the spools by itself.
      onBatch: () => undefined,
    });
    const data = new DataServer({
      config: partOfConfig(config, this.#options.number),
      control: this.#control.port,
      ledger,
      telemetry,
      shutdown: this.#shutdown,
      peppers: installation.peppers,
      clock,
      randomBytes: overrides.randomBytes ?? randomBytes,
      overrides,
      newSharedLimits: await loadSharedLimits(config),
      number: this.#options.number,
      whyNotReady: () => this.#controlState.notReady,
      portUse: this.#options.portUse,
    });
    this.#parts = { config, text, telemetry, ledger, data };
    await data.start();
    this.#control.tellState();
  }

  /**
   * Serves its connections until the last idle one has timed out; the successor gets the new ones.
   */
  async leave(): Promise<void> {
    const { config, data } = this.#parts ?? {};
    await data?.leave((config?.http.idleTimeoutMs ?? 0) + idleSlackMs);
  }

  async drain({ isAnnounced }: { readonly isAnnounced: boolean }): Promise<void> {
    if (this.#parts === undefined) return;
    const { config, data, telemetry } = this.#parts;
    telemetry.events.draining(data.openRequests);
    const drained = this.#shutdown.drain({
      ...config.shutdown,
      isAnnounced,
      openCalls: () => data.openCalls,
      endCalls: () => data.endCalls(),
    });
    this.#control.tellState();
    await drained;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#shutdown.refuse();
    await this.#parts?.data[Symbol.asyncDispose]();
    await this.#parts?.telemetry.traces.stop();
    await this.#control.stop();
    this.#outage.stop();
  }

  #reconfigure(feed: ConfigFeed): void {
    const parts = this.#parts;
    if (parts === undefined) return;
    this.#generation = feed.generation;
    // Another control process announces the same configuration again.
    if (feed.text === parts.text) return;
    const config = this.#options.configOf(feed, parts.config);
    if (config === undefined) return;
    this.#parts = { ...parts, config, text: feed.text };
    parts.data.reconfigure(partOfConfig(config, this.#options.number));
    this.#control.tellState();
  }

  #state(): WorkerState {
    return {
      ...(this.#parts?.data.facts ?? ownFacts()),
      number: this.#options.number,
      startedAt: this.#startedAt,
      url: this.url,
      notReady: this.#whyNotReady(),
      configuredAt: this.#generation,
      spool: this.#parts?.ledger.folder,
      waitingRows: this.#waitingRows,
      droppedLogLines: this.#options.log.droppedLines,
    };
  }

  #whyNotReady(): string | undefined {
    return this.#parts === undefined ? "starting" : this.#parts.data.whyNotReady();
  }

  #controlLost(reason: LinkLost, isReplaced: boolean): void {
    // Calls continue without control.
    this.#controlState = { ...this.#controlState, notReady: undefined };
    this.#outage.lost(reason, isReplaced);
  }

  get #waitingRows(): number {
    return this.#parts?.ledger.countWaiting(this.#controlState.stored) ?? 0;
  }

  #createTelemetry({ telemetry }: Config): Telemetry {
    const { logLevel: level, logFormat: format, ...settings } = telemetry;
    return createTelemetry({
      ...settings,
      level,
      format,
      clock: systemClock,
      log: this.#options.log,
      worker: String(this.#options.number),
      programVersion: packageJson.version,
      gauges: {
        openRequests: () => this.#parts?.data.openRequests ?? 0,
        queuedUsageRows: () => this.#waitingRows,
        spoolBytes: () => this.#parts?.ledger.spoolBytes ?? 0,
        keysAgeSeconds: () => (this.#parts?.data.keysAgeMs ?? 0) / 1000,
        residentBytes: () => process.memoryUsage.rss(),
        processes: () => [readOwnProcess(String(this.#options.number))],
      },
    });
  }
}

/** A configuration and the text it was parsed from. */
export interface WorkerConfig {
  readonly config: Config;
  readonly text: string;
}

interface WorkerParts extends WorkerConfig {
  readonly telemetry: Telemetry;
  readonly ledger: SpoolWriter;
  readonly data: DataServer;
}
