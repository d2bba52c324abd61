import { mkdirSync } from "node:fs";
import packageJson from "../../../package.json" with { type: "json" };
import type { Config } from "../../config/config.ts";
import type { SettingInUse } from "../../config/effective-settings.ts";
import type { AdminServices, ConfigurationInUse } from "../../control/services.ts";
import type { ProcessStatus } from "../../control/platform/process-status.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import { Shutdown } from "../../edge/shutdown.ts";
import { FolderLock, leaderLock } from "../../ledger/spool/folder-lock.ts";
import { Installation } from "../../store/installation/installation.ts";
import { keepProcessCount } from "../../store/limits/valkey/process-count.ts";
import { RefusalLog } from "../../admission/refusals/refusal-log.ts";
import type { MetricsExport } from "../../telemetry/otlp/metrics-export.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import { createTelemetry, type Telemetry } from "../../telemetry/telemetry.ts";
import type { ConfigText, DemoAccess, MainState, ToControl } from "../messages.ts";
import { StartProblem, type Handlers } from "../thread-link.ts";
import { platformOf } from "./admin-plane.ts";
import { erasing, openStorage, type Storage } from "../wiring/open-storage.ts";
import { keepLastGood } from "../last-good.ts";
import { createKeyTotals } from "./key-totals.ts";
import { Leader, type LeaderOptions } from "./leader.ts";
import { PriceFeed } from "./price-feed.ts";
import { ProcessPages } from "./process-pages.ts";
import { ProcessRows } from "./process-rows.ts";
import { RecentSecrets } from "./recent-secrets.ts";
import { storeHandlers } from "./store-handlers.ts";
import { SpendFeed } from "./spend-feed.ts";

type OfLeader = "link" | "clock" | "portUse" | "pid" | "number" | "passwords";

export interface ControlPlaneOptions extends Pick<LeaderOptions, OfLeader> {
  readonly config: Config;
  /** The text of the configuration, and when it was loaded; undefined: of a test. */
  readonly text: ConfigText | undefined;
  readonly log: LogSink;
  readonly randomBytes: RandomBytes;
  readonly explain: (error: unknown) => string;
  readonly reload: () => void;
  /** The settings of a text of the configuration, and of the text at the start of the process. */
  readonly settingsOf: (text: string, startText: string) => readonly SettingInUse[];
  readonly onTick?: () => void;
  readonly onStopped?: () => void;
  readonly issueDemoAccess: (admin: AdminServices, adminUrl: string) => Promise<DemoAccess>;
}

/** How often a process tries to lead, and how often it tells the main thread about storage. */
const lookIntervalMs = 250;
/** Processes whose parent was killed end within this time. */
const orphansEndMs = 3_000;

/**
 * The control plane of a gateway process: the database, the feed of keys and, in the process that
 * leads its machine, the admin listener and the jobs.
 */
export class ControlPlane implements AsyncDisposable {
  readonly admin: AdminServices;
  readonly installation: Installation;
  readonly storage: Storage;
  readonly telemetry: Telemetry;
  readonly #options: ControlPlaneOptions;
  readonly #refusals = new RefusalLog();
  readonly #recent = new RecentSecrets();
  readonly #pages: ProcessPages;
  readonly #rows: ProcessRows;
  readonly #spend: SpendFeed;
  readonly #prices: PriceFeed;
  readonly #shutdown = new Shutdown();
  readonly #export: MetricsExport;
  #config: Config;
  #loadedAt: number;
  #text: string | undefined;
  /** Whether all of the text is in use, and nothing waits for a restart. */
  #isWhole: boolean;
  #main: MainState | undefined;
  #spool: string | undefined;
  #lock: FolderLock | undefined;
  #leader: Leader | undefined;
  #mayLead = true;
  #looking: Promise<void> = Promise.resolve();
  #stopTimer = (): void => undefined;
  #closing: Promise<void> | undefined;

  /** The database is not opened yet. */
  constructor(options: ControlPlaneOptions) {
    const { config, clock, randomBytes, log, link, number, text, portUse } = options;
    this.#options = options;
    this.#config = config;
    this.#text = text?.text;
    this.#isWhole = text?.startText === undefined || text.startText === text.text;
    this.#loadedAt = text?.loadedAt ?? clock.now();
    const telemetry = (this.telemetry = createTelemetry({
      settings: config.telemetry,
      clock,
      log,
      process: number,
      version: packageJson.version,
      gauges: { sluice_ledger_spool_bytes: () => this.#leader?.jobs.ingest.leftBytes ?? 0 },
    }));
    this.installation = new Installation(config, { random: randomBytes, clock });
    this.storage = openStorage({
      settings: () => this.#config,
      clock,
      owner: this.installation,
      telemetry,
    });
    this.#pages = new ProcessPages({
      dataDir: config.dataDir,
      number,
      refusals: this.#refusals,
      link,
      metrics: telemetry.metrics,
      status: () => this.#status,
      recentSecrets: () => this.#recent.since(clock.now()),
      followKeys: () => this.#rows.follow(),
      progressOf: (path) => this.#leader?.jobs.ingest.progressOf(path),
    });
    this.#rows = this.#createRows();
    this.#spend = new SpendFeed({
      store: this.storage.spend,
      clock,
      rows: () => this.#rows.known,
      state: () => ({ chargesAs: this.#main?.chargesAs, ingest: this.#leader?.ingest ?? "none" }),
      tell: (note) => link.tell("spend", note),
    });
    this.#prices = new PriceFeed({
      store: this.storage.prices,
      clock,
      config: () => this.#config,
      publishes: () =>
        this.#leader !== undefined || (this.#mayLead && ["first", "alone"].includes(portUse)),
      tell: (tables) => link.tell("prices", tables),
      events: telemetry.storage,
    });
    this.#export = telemetry.exportOf({
      collect: () => this.#pages.collectOwn(),
      kindOf: (alias) =>
        this.#config.environments.flatMap(({ models }) => models.get(alias) ?? [])[0]?.kind,
    });
    this.admin = this.#createServices();
    link.handle(this.#handlers());
  }

  /** Empty while another process has the admin listener. */
  get adminUrl(): string {
    return this.#leader?.url ?? "";
  }

  /** Applies a validated configuration. */
  reconfigure(config: Config, text?: string, isWhole = true): void {
    const { clock, link } = this.#options;
    this.#config = config;
    this.#text = text;
    this.#isWhole = isWhole;
    const loadedAt = (this.#loadedAt = clock.now());
    this.#leader?.reconfigure(config);
    this.#export.configure(config.telemetry.otlp);
    const following = this.#prices.follow();
    if (text === undefined) return;
    // Calls at a new target have a price from the first one on.
    void following.then(() => link.tell("config.changed", { text, loadedAt }));
    if (this.#leader !== undefined) this.#keepLastGood();
  }

  /** Opens the database. Throws if it can never be used, or if another gateway leads this machine. */
  async open(): Promise<void> {
    await this.storage.open();
    if (this.#options.portUse === "first") {
      // A database elsewhere has not created it.
      mkdirSync(this.#config.dataDir, { recursive: true, mode: 0o700 });
      this.#lock ??= new FolderLock(this.#config.dataDir, leaderLock);
      // Two gateways that start at the same moment do not see each other in any other way.
      await this.#lock.takeWithin(orphansEndMs, this.#options.clock);
    }
    await this.#prices.start();
  }

  /** Begins once the process serves. Throws if the address of the admin listener is taken. */
  async serve(spool: string | undefined): Promise<void> {
    this.#spool = spool;
    this.#pages.start((error) => this.telemetry.events.siblingsFailed(error));
    this.#rows.start();
    this.#spend.start();
    this.#export.configure(this.#config.telemetry.otlp);
    this.#looking = this.#look();
    await this.#looking;
  }

  /** Lets another process lead, and serves open requests until it does. */
  async leave(): Promise<void> {
    await this.#ceaseToLook();
    this.#pages.leave();
    const leader = this.#leader;
    this.#leader = undefined;
    await leader?.leave();
    this.#release();
  }

  /** Stores what can be stored, and closes the database. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#ceaseToLook();
    this.#stopTimer();
    this.#shutdown.refuse();
    await this.#export.stop();
    await this.#leader?.stop();
    this.#leader = undefined;
    await this.#spend.stop();
    await this.#rows.stop();
    await this.#prices.stop();
    this.#pages.stop();
    this.#release();
    await this.storage.close();
  }

  /** A leader that is about to start must not do so once the lock is released. */
  async #ceaseToLook(): Promise<void> {
    this.#mayLead = false;
    await this.#looking.catch(() => undefined);
  }

  #release(): void {
    this.#lock?.release();
    this.#lock = undefined;
  }

  /** Tries to lead, and tells the main thread about storage. Runs again and again. */
  async #look(): Promise<void> {
    const { clock, link } = this.#options;
    try {
      await this.#tryToLead();
    } finally {
      const notReady = this.storage.whyNotReady();
      link.tell("storage", { notReady, stored: await this.#storedProgress() });
      if (this.#closing === undefined) {
        this.#stopTimer = clock.schedule(() => {
          this.#looking = this.#look();
          // The reason is in the log, and the next look tries again.
          this.#looking.catch((error: unknown) => this.telemetry.events.leadFailed(error));
        }, lookIntervalMs);
      }
    }
  }

  async #tryToLead(): Promise<void> {
    if (this.#leader !== undefined || !this.#mayLead) return;
    this.#lock ??= new FolderLock(this.#config.dataDir, leaderLock);
    if (!this.#lock.isTaken && !this.#lock.take()) return;
    const leader = new Leader({
      ...this.#options,
      telemetry: this.telemetry,
      config: this.#config,
      shutdown: this.#shutdown,
      services: this.admin,
      jobs: this.storage.lead(),
      refusals: this.#refusals,
      renderMetrics: () => this.#pages.renderAll(),
      whyNotReady: () => this.#whyNotReady(),
      howDegraded: () => this.#main?.degraded,
    });
    try {
      await leader.start();
    } catch (error) {
      await leader.stop();
      throw error;
    }
    this.#leader = leader;
    this.#keepLastGood();
    this.#options.link.tell("leads", { adminUrl: leader.url, ticketDigest: leader.ticketDigest });
  }

  #keepLastGood(): void {
    if (this.#text === undefined || !this.#isWhole) return;
    keepLastGood(this.#config.dataDir, this.#text).catch((error: unknown) =>
      this.telemetry.events.lastGoodFailed(error),
    );
  }

  async #storedProgress() {
    if (this.#spool === undefined) return undefined;
    return (
      this.#leader?.jobs.ingest.progressOf(this.#spool) ?? this.#pages.askProgress(this.#spool)
    );
  }

  #whyNotReady(): string | undefined {
    if (this.#shutdown.hasBegun) return "shutting down";
    const main = this.#main;
    return this.storage.whyNotReady() ?? (main === undefined ? "starting" : main.notReady);
  }

  get #status(): ProcessStatus {
    const { number } = this.#options;
    const leads = this.#leader !== undefined;
    return { number, leads, notReady: this.#whyNotReady(), facts: this.#main };
  }

  #handlers(): Handlers<ToControl> {
    const { explain, reload, issueDemoAccess, onTick, onStopped } = this.#options;
    const { keys, lastUse, usage } = this.storage;
    const refuse = (error: unknown): never => {
      throw new StartProblem(explain(error));
    };
    return {
      ...storeHandlers(this.storage),
      open: async () => {
        await this.open().catch(refuse);
        return this.installation.secrets.map((secret) => secret.reveal());
      },
      serve: (spool) => this.serve(spool).catch(refuse),
      state: (state) => {
        this.#main = state;
        onTick?.();
      },
      "keys.load": async ({ since, limit }) =>
        this.#spend.beforeKeys(await keys.loadKeys(since, limit)),
      "keys.used": (uses) => {
        for (const [publicId, at] of uses) lastUse.note(publicId, at);
        this.#recent.note(uses);
      },
      "usage.insert": (records) => (this.#leader?.jobs.usage ?? usage).insert(records),
      "usage.of-key": createKeyTotals(this.storage, this.#options.clock),
      "usage.flush": () => this.#leader?.jobs.ingest.flush(),
      reload,
      "demo.issue-access": () => issueDemoAccess(this.admin, this.adminUrl),
      leave: () => this.leave(),
      stop: async () => {
        onStopped?.();
        await this[Symbol.asyncDispose]();
        await this.telemetry.traces.stop();
      },
    };
  }

  #configurationInUse(): ConfigurationInUse {
    const { text: first, settingsOf } = this.#options;
    const text = this.#text ?? "";
    const settings = settingsOf(text, first?.startText ?? first?.text ?? text);
    return { path: first?.path, loadedAt: this.#loadedAt, settings };
  }

  #createRows(): ProcessRows {
    const { clock, randomBytes, link } = this.#options;
    return new ProcessRows({
      store: this.storage.processes,
      watchKeys: this.storage.watchKeys,
      clock,
      folder: this.installation.folder,
      peppers: this.installation.peppers,
      limitStore: this.#config.limits.store,
      random: randomBytes,
      number: this.#options.number,
      state: () => ({
        loadedAt: this.#loadedAt,
        text: this.#text,
        main: this.#main,
        notReady: this.#whyNotReady(),
        ingest: this.#leader?.ingest ?? "none",
        adminUrl: this.#config.admin.publicUrl ?? this.adminUrl,
      }),
      // Until then, a process that is cut off may still accept keys.
      keptMs: this.#config.auth.snapshotMaxAgeMs,
      reloadKeys: () => link.ask("keys.reload", undefined),
      tellSiblings: () => this.#pages.tellKeysChanged(),
      keepKeys: async (epoch) => {
        if (this.#leader !== undefined) await this.storage.keyFile?.follow(epoch);
      },
      onCounted: (processes) => void keepProcessCount(this.#config.dataDir, processes),
      events: this.telemetry.storage,
    });
  }

  #createServices(): AdminServices {
    const { control: store, prices, reports, costs, usage, lastUse } = this.storage;
    return {
      store,
      prices,
      reports,
      costs,
      usage: erasing(() => this.#leader?.jobs.usage ?? usage),
      refusals: this.#pages,
      live: this.#pages,
      clock: this.#options.clock,
      random: this.#options.randomBytes,
      peppers: this.installation.peppers,
      platform: () => platformOf(this.#config),
      configuration: () => this.#configurationInUse(),
      processes: () => this.#pages.statuses(),
      lastUse: (publicId) => lastUse.of(publicId),
      onKeysChanged: () => this.#rows.applied(),
      processRows: () => this.#rows.list(),
      lastProcessRows: () => this.#rows.last(),
    };
  }
}
