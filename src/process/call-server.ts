import type { RefusalLog } from "../admission/refusals/refusal-log.ts";
import type { CallServices } from "../call/services.ts";
import type { Clock } from "../domain/clock.ts";
import type { RandomBytes } from "../domain/keys/base62.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import type { ReadKeyUse } from "../dialects/key-usage.ts";
import { joinLacks } from "../control/platform/process-status.ts";
import { sellableUnits } from "../domain/limits/capacity.ts";
import type { LiveFacts, WantedKeys } from "../domain/live-facts.ts";
import type { PriceBook } from "../domain/money/price.ts";
import type { Proxies } from "../domain/upstream-settings.ts";
import type { Shutdown } from "../edge/shutdown.ts";
import type { SpoolWriter } from "../ledger/spool/spool-writer.ts";
import type { CallHook } from "../snapshot/call-hooks.ts";
import type { LimitStore } from "../store/limits/limit-store.ts";
import type { LogSink } from "../telemetry/log/log-output.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { ControlPort } from "./control-client.ts";
import type { ProcessLimits } from "./wiring/open-valkey-limits.ts";
import { RunningCalls } from "../call/running-calls.ts";
import type { Config } from "../config/config.ts";
import type { EdgeSettings, KeyedAccess } from "../edge/dispatch/dispatch-options.ts";
import { RouteTable } from "../edge/dispatch/route-table.ts";
import type { Listener, PortUse } from "../edge/listen.ts";
import { draining } from "../edge/replies/route-refusal.ts";
import { RepeatableCalls } from "../idempotency/repeatable-calls.ts";
import { StoredResponses } from "../idempotency/stored-responses.ts";
import { createAuthenticate, type KeyRules } from "../keys/authenticate.ts";
import { howDegraded, keyPollMs, KeyRing } from "../keys/key-ring.ts";
import { dataRoutes } from "../routes.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { StartProblem, ThreadLost } from "./thread-link.ts";
import { readKeyUse, readLiveFacts } from "./live-facts.ts";
import { openLimits } from "./open-limits.ts";
import { buildServices, followConfig, type BuiltServices } from "./wiring/build-services.ts";
import {
  buildApiSettings,
  buildEdge,
  buildHooks,
  buildSnapshot,
  type Replaced,
  type SnapshotParts,
} from "./wiring/build-snapshot.ts";
import { startListener, type UnixListener } from "./wiring/start-listener.ts";
import { serveTickets } from "./ticket-socket.ts";
import { whyNoKeys, whyNoTarget } from "./why-not-ready.ts";

/** Replacements for tests, and additions of the command line. */
export interface ProcessOverrides {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly randomBytes?: RandomBytes;
  readonly limits?: LimitStore;
  readonly resolveHost?: CallServices["resolveHost"];
  /** Run after those of the configuration. */
  readonly hooks?: readonly CallHook[];
  /** Forward proxies on the way to upstreams; none without it. */
  readonly proxies?: Proxies;
  /** Destination of the log; discarded without it. */
  readonly log?: LogSink;
}

export interface CallServerOptions {
  readonly config: Config;
  readonly control: ControlPort;
  readonly ledger: SpoolWriter;
  readonly prices: PriceBook;
  readonly telemetry: Telemetry;
  readonly shutdown: Shutdown;
  readonly refusals: RefusalLog;
  readonly peppers: Peppers;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly overrides: ProcessOverrides;
  /** Set when the limits are shared with other processes. */
  readonly sharedLimits?: ProcessLimits | undefined;
  /** Number of this process, from 1. */
  readonly number?: number;
  /** Undefined when the control thread can serve. */
  readonly whyNotReady: () => string | undefined;
  readonly portUse?: PortUse | undefined;
}

/** Longer than it takes to make a connection whose packets were lost once. */
const settleMs = 1_500;

/** What serves calls: the data listener, the keys in memory, the call and its upstreams. */
export class CallServer implements AsyncDisposable {
  readonly #options: CallServerOptions;
  readonly #running: RunningCalls;
  readonly #keyRing: KeyRing;
  readonly #services: BuiltServices;
  readonly limits: ProcessLimits;
  readonly #repeatable: RepeatableCalls;
  readonly #responses: StoredResponses;
  #config: Config;
  #edge: EdgeSettings;
  #snapshot: Snapshot;
  #listener: Listener | undefined;
  #tickets: UnixListener | undefined;

  constructor(options: CallServerOptions) {
    const { config, control, clock, telemetry, peppers, randomBytes } = options;
    this.#options = options;
    this.#config = config;
    this.#edge = buildEdge(config);
    this.#keyRing = this.#createKeyRing();
    this.#running = new RunningCalls(
      (keyId) => this.#keyRing.isLive(keyId),
      (publicId) => this.#keyRing.findEnded(publicId),
      clock,
    );
    this.#snapshot = this.#makeSnapshot(config);
    this.limits = openLimits({ ...options, keys: this.#keyRing });
    this.#services = this.#buildServices();
    this.#repeatable = new RepeatableCalls({
      store: control.claims,
      clock,
      running: this.#running,
      peppers,
      random: randomBytes,
      settings: () => this.#config.idempotency,
      writeTimeoutMs: () => this.#config.streams.writeTimeoutMs,
      onAnswer: telemetry.metrics.answered,
    });
    this.#responses = new StoredResponses({
      store: control.responses,
      peppers,
      random: randomBytes,
      clock,
    });
    this.#followConfig();
    telemetry.metrics.follow({ pools: () => this.#services.capacity.views() });
  }

  get url(): string {
    return this.#listener?.url ?? "";
  }

  get openRequests(): number {
    return (this.#listener?.pendingRequests ?? 0) + (this.#tickets?.pendingRequests ?? 0);
  }

  /** Open requests, or calls that continue without one. */
  get openCalls(): number {
    return Math.max(this.openRequests, this.#running.size);
  }

  /**
   * Serves its connections until they are closed, or the timeout has passed, while another
   * process gets the new ones. Calls may still be running afterwards.
   */
  async leave(timeoutMs: number): Promise<void> {
    const listener = this.#listener;
    this.limits.leave?.();
    if (listener === undefined) return;
    // Where connections cannot be counted, callers may return on any of them.
    const left = this.#options.shutdown.leave(() => listener.connections ?? 1, timeoutMs);
    await Promise.all([left, listener.retire(settleMs)]);
  }

  /** Age of the keys in memory; it grows while the database cannot be read. */
  get keysAgeMs(): number {
    return this.#keyRing.ageMs;
  }

  get facts() {
    const { longestMs, p99Ms } = this.#services.overload.loop.ofLastMinute;
    return {
      notReady: this.whyNotReady(),
      degraded: joinLacks([howDegraded(this.#keyRing), this.limits.lack?.()]),
      loopDelayLongestMs: longestMs,
      loopDelayP99Ms: p99Ms,
      openCalls: this.openCalls,
      calls: this.#running.entered,
      spoolBytes: this.#options.ledger.spoolBytes,
      keysGeneration: this.#keyRing.epoch,
      chargesAs: this.limits.chargesAs,
    };
  }

  liveFacts(wanted: WantedKeys): LiveFacts {
    const { number = 1, ledger } = this.#options;
    return readLiveFacts(
      {
        process: number,
        openCalls: this.openCalls,
        spoolBytes: ledger.spoolBytes,
        spoolLimitBytes: this.#config.ledger.spoolLimitBytes,
        reservedNano: this.limits.reservedNano?.(),
        services: this.#services,
        keys: this.#keyRing,
        snapshot: this.#snapshot,
      },
      wanted,
    );
  }

  /** Loads the keys, restores the limits and listens. Throws when the address is taken. */
  async start(): Promise<void> {
    const { ledger, portUse } = this.#options;
    await this.#keyRing.start();
    const lack = whyNoKeys(this.#keyRing);
    // The process that it would replace may have them.
    if (portUse === "successor" && lack !== undefined) throw new StartProblem(lack);
    ledger.start();
    await this.limits.start();
    this.#reportOversold();
    this.#listener = this.#listen();
    this.#services.overload.start();
  }

  /** This process leads: its control thread calls as keys, with the ticket of this digest. */
  serveTickets(digest: string): void {
    const { number = 1, telemetry } = this.#options;
    this.#tickets?.[Symbol.dispose]();
    try {
      this.#tickets = serveTickets({
        place: { dataDir: this.#config.dataDir, number },
        digest,
        keys: this.#keyRing,
        rules: this.#keyRules,
        routes: this.#routes(),
        plan: this.#plan,
      });
    } catch (error) {
      telemetry.events.siblingsFailed(error);
    }
  }

  async reloadKeys(): Promise<number> {
    await this.#keyRing.reload();
    return this.#keyRing.epoch;
  }

  reconfigure(config: Config): void {
    const before = { config: this.#config, snapshot: this.#snapshot };
    this.#snapshot = this.#makeSnapshot(config, before);
    this.#config = config;
    this.#edge = buildEdge(config);
    this.#followConfig();
    this.#reportOversold();
  }

  whyNotReady(): string | undefined {
    const { ledger, shutdown, whyNotReady } = this.#options;
    if (shutdown.hasBegun) return "shutting down";
    const known = whyNoKeys(this.#keyRing) ?? ledger.whyNotReady();
    return whyNotReady() ?? known ?? whyNoTarget(this.#snapshot);
  }

  /** Ends the calls that still run, with the error that callers of a draining gateway get. */
  endCalls(): void {
    this.#running.endAll(draining);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { shutdown } = this.#options;
    shutdown.refuse();
    this.#services.overload.stop();
    // Open calls are ended and aborted, which settles them.
    this.endCalls();
    this.#tickets?.[Symbol.dispose]();
    await this.#listener?.cut();
    await shutdown.settle(() => this.#running.size);
    await this.#repeatable.close();
    this.#keyRing.stop();
    await this.limits.close();
    await this.#options.ledger.shutDown();
  }

  #makeSnapshot(config: Config, before?: Replaced): Snapshot {
    const { clock, randomBytes, telemetry, overrides } = this.#options;
    const { events } = telemetry;
    const hooks = [...buildHooks(config, events), ...(overrides.hooks ?? [])];
    const onTrouble: SnapshotParts["onTrouble"] = (...about) => events.upstreamTrouble(...about);
    return buildSnapshot(config, { clock, randomBytes, onTrouble, hooks }, before);
  }

  /** Logs pools that hold fewer units than live keys have, which are the same in all processes. */
  #reportOversold(): void {
    const { number = 1, telemetry } = this.#options;
    if (number !== 1) return;
    for (const [name, soldUnits] of this.#keyRing.unitsByPool) {
      const pool = this.#config.pools.get(name);
      const sellable = pool === undefined ? 0 : sellableUnits(pool);
      if (soldUnits > sellable) telemetry.events.poolOversold(name, soldUnits, sellable);
    }
  }

  #followConfig(): void {
    const { routing: events } = this.#options.telemetry;
    this.#options.telemetry.traces.configure(this.#config.telemetry.otlp);
    followConfig(this.#services, { config: this.#config, snapshot: this.#snapshot, events });
  }

  #createKeyRing(): KeyRing {
    const { control, clock, telemetry } = this.#options;
    return new KeyRing({
      store: control.keys,
      clock,
      intervalMs: keyPollMs(this.#options.config.storage),
      onReloaded: () => telemetry.storage.keys.recovered(),
      onChanged: () => {
        this.#running.endStale();
        this.#services.capacity.unitsChanged();
      },
      onReloadFailed: (error) => {
        // The loss of the control thread is reported once.
        if (!(error instanceof ThreadLost)) telemetry.storage.keys.failed(error);
      },
    });
  }

  #buildServices(): BuiltServices {
    const { config, clock, ledger, prices, telemetry, overrides, peppers } = this.#options;
    return buildServices({
      ...overrides,
      peppers,
      limits: this.limits.store,
      sharing: this.limits.sharing,
      config,
      clock,
      ledger,
      prices,
      events: telemetry.events,
      running: this.#running,
      refusals: this.#options.refusals,
      routing: () => this.#config.routing,
      routingEvents: telemetry.routing,
      units: this.#keyRing,
      overload: {
        settings: () => this.#config.overload,
        callsUnderWay: () => this.openRequests,
        events: telemetry.overload,
      },
    });
  }

  #listen(): Listener {
    const plan = this.#plan;
    return startListener({
      ...plan,
      keyed: { ...plan.keyed, authenticate: this.#createAuthenticate() },
      address: this.#config.listen.data,
      routes: this.#routes(),
      idleTimeoutMs: this.#config.http.idleTimeoutMs,
      portUse: this.#options.portUse,
    });
  }

  /** What all listeners for calls have in common. */
  get #plan() {
    const { telemetry, clock, shutdown, refusals } = this.#options;
    const { overload, count } = this.#services;
    const keyed = { snapshot: () => this.#snapshot, count, overload };
    const { events } = telemetry;
    return { edge: () => this.#edge, keyed, events, refusals, clock, shutdown };
  }

  get #keyRules(): KeyRules {
    const { clock, telemetry } = this.#options;
    return {
      clock,
      secrets: this.#keyRing,
      snapshotMaxAgeMs: this.#config.auth.snapshotMaxAgeMs,
      plans: () => this.#snapshot.plans,
      onPlanMissing: (keyId, plan) => telemetry.events.planMissing(keyId, plan),
    };
  }

  #createAuthenticate(): KeyedAccess["authenticate"] {
    const { control, peppers } = this.#options;
    return (form) =>
      createAuthenticate({
        ...this.#keyRules,
        form,
        peppers,
        secrets: this.#keyRing,
        onUsed: (publicId, at) => control.noteUse(publicId, at),
        onOutdated: (secret) => control.renewDigest(secret),
      });
  }

  #routes(): RouteTable {
    const settings = () => buildApiSettings(this.#config);
    const parts = {
      services: this.#services,
      settings,
      repeats: this.#repeatable,
      responses: this.#responses,
    };
    const { totalsOf } = this.#options.control;
    const readUse: ReadKeyUse = (call) => readKeyUse(call, this.limits.read, totalsOf);
    const whyNotReady = (): string | undefined => this.whyNotReady();
    const lack = (): string | undefined => howDegraded(this.#keyRing);
    return new RouteTable(dataRoutes({ ...parts, readUse, whyNotReady, howDegraded: lack }));
  }
}
