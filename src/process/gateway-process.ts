import packageJson from "../../package.json" with { type: "json" };
import { RefusalLog } from "../admission/refusals/refusal-log.ts";
import type { Config, ListenAddress } from "../config/config.ts";
import type { IssuedToken } from "../control/sign-in/bootstrap/bootstrap.ts";
import { systemClock, type Clock } from "../domain/clock.ts";
import { Peppers } from "../domain/keys/peppers.ts";
import { Secret } from "../domain/keys/secret.ts";
import { PublishedPrices } from "../domain/money/price.ts";
import { type PortUse, refuseTaken } from "../edge/listen.ts";
import { Shutdown } from "../edge/shutdown.ts";
import { processFolderName, spoolRoot } from "../ledger/spool/process-folder.ts";
import { SpoolWriter } from "../ledger/spool/spool-writer.ts";
import type { TelemetryEvents } from "../telemetry/events/events.ts";
import { noLog } from "../telemetry/log/log-output.ts";
import { createTelemetry, type Telemetry } from "../telemetry/telemetry.ts";
import { ControlClient, type RunningControl } from "./control-client.ts";
import type { ConfigText, MainState } from "./messages.ts";
import { readCommit } from "./program.ts";
import { CallServer, type ProcessOverrides } from "./call-server.ts";
import { openSharedLimits } from "./open-limits.ts";

export interface GatewayProcessOptions {
  readonly config: Config;
  /** Number of this process among those of the machine, from 1. */
  readonly number: number;
  readonly portUse: PortUse;
  /** Nobody may listen there yet, not even one that would share the port. Default: none. */
  readonly newAddresses?: readonly ListenAddress[];
  readonly overrides: ProcessOverrides;
  /** Starts the control plane, again after each of its deaths. */
  readonly startControl: () => RunningControl;
  /** Reads a configuration that the control plane has checked; undefined if it cannot be read here. */
  readonly configOf: (text: string, current: Config) => Config | undefined;
  readonly onBootstrapToken?: ((token: IssuedToken) => void) | undefined;
  /** The control plane ends again and again: the process should end. */
  readonly onGivenUp: () => void;
}

/** Longer than a process with an idle connection takes to close it. */
const idleSlackMs = 8_000;

/**
 * A gateway process: its main thread serves calls, and its control plane, a thread of its own, has the
 * database.
 */
export class GatewayProcess implements AsyncDisposable {
  readonly #options: GatewayProcessOptions;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #shutdown = new Shutdown();
  readonly #refusals = new RefusalLog();
  readonly #prices = new PublishedPrices();
  readonly #startedAt: number;
  readonly #control: ControlClient;
  #config: Config;
  #configuredAt: number;
  #ledger: SpoolWriter | undefined;
  #calls: CallServer | undefined;
  #adminUrl = "";

  constructor(options: GatewayProcessOptions) {
    const { config, overrides, startControl } = options;
    const { clock = systemClock } = overrides;
    this.#options = options;
    this.#config = config;
    this.#clock = clock;
    this.#startedAt = this.#configuredAt = clock.now();
    const telemetry = (this.#telemetry = this.#createTelemetry());
    this.#control = new ControlClient({
      start: startControl,
      clock,
      state: () => this.#state,
      whyNotReady: () => this.#whyNotReady(),
      handlers: {
        "keys.reload": () => this.#calls?.reloadKeys() ?? 0,
        prices: (tables) => this.#prices.publish(tables, clock.now()),
        "config.changed": (text) => this.#follow(text),
        "live.read": (wanted) => this.#calls?.liveFacts(wanted),
        "limits.read": (of) => this.#calls?.limits.read(of) ?? [],
        spend: (note) => this.#calls?.limits.updateSpend?.(note),
        "metrics.read": () => telemetry.metrics.collect(),
        refusals: ({ filter, limit }) => this.#refusals.list(filter, limit),
        leads: ({ adminUrl, ticketDigest }) => {
          this.#adminUrl = adminUrl;
          this.#calls?.serveTickets(ticketDigest);
        },
        bootstrap: (token) => options.onBootstrapToken?.(token),
        log: (line) => this.#log.write(line),
      },
      events: telemetry.events,
      onGivenUp: options.onGivenUp,
    });
  }

  get dataUrl(): string {
    return this.#calls?.url ?? "";
  }

  /** Empty while another process has the admin listener. */
  get adminUrl(): string {
    return this.#adminUrl;
  }

  get events(): TelemetryEvents {
    return this.#telemetry.events;
  }

  get control(): Pick<ControlClient, "reload" | "issueDemoAccess"> {
    return this.#control;
  }

  /** Opens the database and listens. Throws when a step fails; `StartProblem` from the other thread. */
  async start(): Promise<void> {
    const { overrides, number, portUse, newAddresses = [] } = this.#options;
    for (const address of newAddresses) refuseTaken(address);
    const { clock = systemClock, randomBytes = (target) => crypto.getRandomValues(target) } =
      overrides;
    const [config, telemetry] = [this.#config, this.#telemetry];
    const peppers = peppersOf(await this.#control.open());
    // Nothing is served unless both addresses are free.
    const { data, admin } = config.listen;
    if (portUse === "first") for (const address of [data, admin]) refuseTaken(address);
    const control = this.#control.port;
    this.#ledger = new SpoolWriter({
      root: spoolRoot(config.dataDir),
      name: processFolderName(number, clock.now(), process.pid),
      settings: config.ledger,
      clock,
      on: telemetry.ledger,
      direct: control.usage,
    });
    const calls = new CallServer({
      config,
      control,
      ledger: this.#ledger,
      prices: this.#prices,
      telemetry,
      shutdown: this.#shutdown,
      refusals: this.#refusals,
      peppers,
      clock,
      randomBytes,
      overrides,
      sharedLimits: await openSharedLimits({ config, clock, telemetry, overrides }),
      number,
      whyNotReady: () => this.#control.storage.notReady,
      portUse,
    });
    this.#calls = calls;
    await calls.start();
    await this.#control.serve(this.#ledger.folder);
  }

  /** Applies a validated configuration to calls. Listeners and storage are not changed. */
  reconfigure(config: Config, loadedAt: number = this.#clock.now()): void {
    this.#config = config;
    this.#configuredAt = loadedAt;
    this.#calls?.reconfigure(config);
    this.#control.tellState();
  }

  /** Stores all usage of the ledger in the database. */
  async flushUsage(): Promise<void> {
    await this.#ledger?.maintain();
    await this.#control.flushUsage();
    await this.#ledger?.maintain();
  }

  /** Serves the connections that it has until they are idle, while a successor gets the new ones. */
  async leave(): Promise<void> {
    const leaving = this.#control.leave();
    await this.#calls?.leave(this.#config.http.idleTimeoutMs + idleSlackMs);
    await leaving;
  }

  async drain({ isAnnounced = true } = {}): Promise<void> {
    const calls = this.#calls;
    if (this.#shutdown.hasBegun || calls === undefined || calls.url === "") return;
    this.events.draining(calls.openRequests);
    const drained = this.#shutdown.drain({
      ...this.#config.shutdown,
      isAnnounced,
      openCalls: () => calls.openCalls,
      endCalls: () => calls.endCalls(),
    });
    this.#control.tellState();
    await drained;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#shutdown.refuse();
    await this.#calls?.[Symbol.asyncDispose]();
    await this.#telemetry.traces.stop();
    await this.#control.stop();
  }

  #follow({ text, loadedAt }: Omit<ConfigText, "path">): void {
    const config = this.#options.configOf(text, this.#config);
    if (config !== undefined) this.reconfigure(config, loadedAt);
  }

  get #state(): MainState | undefined {
    return (
      this.#calls && {
        ...this.#calls.facts,
        pid: process.pid,
        version: packageJson.version,
        residentBytes: process.memoryUsage.rss(),
        startedAt: this.#startedAt,
        configuredAt: this.#configuredAt,
        waitingRows: this.#waitingRows,
        droppedLogLines: this.#log.droppedLines,
      }
    );
  }

  #whyNotReady(): string | undefined {
    return this.#calls === undefined ? "starting" : this.#calls.whyNotReady();
  }

  /** Undefined while nobody says how far the spool is stored. */
  get #waitingRows(): number | undefined {
    const { stored } = this.#control.storage;
    return stored && this.#ledger?.countWaiting(stored);
  }

  /** Keys that were never read are as old as the process. */
  get #keysAgeMs(): number {
    return Math.min(this.#calls?.keysAgeMs ?? 0, this.#clock.now() - this.#startedAt);
  }

  get #log() {
    return this.#options.overrides.log ?? noLog;
  }

  #createTelemetry(): Telemetry {
    return createTelemetry({
      settings: this.#config.telemetry,
      clock: this.#clock,
      log: this.#log,
      process: this.#options.number,
      version: packageJson.version,
      gauges: {
        sluice_open_requests: () => this.#calls?.openRequests ?? 0,
        sluice_ledger_queue_rows: () => this.#waitingRows,
        sluice_ledger_spool_bytes: () => this.#ledger?.spoolBytes ?? 0,
        sluice_keys_age_seconds: () => this.#keysAgeMs / 1000,
        program: { version: packageJson.version, commit: readCommit() },
      },
    });
  }
}

function peppersOf(texts: readonly string[]): Peppers {
  const [first, ...older] = texts.map((text) => new Secret(text));
  if (first === undefined) throw new Error("there is no pepper");
  return new Peppers(first, older);
}
