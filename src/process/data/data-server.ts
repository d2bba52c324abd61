import { RunningCalls } from "../../call/running-calls.ts";
import type { Config } from "../../config/config.ts";
import { requestIds } from "../../domain/request-trace.ts";
import type { EdgeSettings, KeyedAccess } from "../../edge/dispatch/dispatch-options.ts";
import { RouteTable } from "../../edge/dispatch/route-table.ts";
import type { Listener } from "../../edge/listen.ts";
import { draining } from "../../edge/replies/route-refusal.ts";
import { RepeatableCalls } from "../../idempotency/repeatable-calls.ts";
import { createAuthenticate } from "../../keys/authenticate.ts";
import { howDegraded, keyPollMs, KeyRing } from "../../keys/key-ring.ts";
import { dataRoutes } from "../../routes.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import type { DataServerOptions } from "./data-server-options.ts";
import { ThreadLost } from "../thread-link.ts";
import { ownFacts, type OwnFacts } from "../own-facts.ts";
import { openLimits, type ProcessLimits } from "./open-limits.ts";
import { whyDegraded, whyNoKeys } from "./why-degraded.ts";
import { whyNoTarget } from "./why-no-target.ts";
import { adapterServices } from "../wiring/adapter-services.ts";
import { buildHooks } from "../wiring/build-hooks.ts";
import { followConfig } from "../wiring/build-routing.ts";
import { buildServices, type BuiltServices } from "../wiring/build-services.ts";
import {
  buildApiSettings,
  buildEdge,
  buildSnapshot,
  type Replaced,
} from "../wiring/build-snapshot.ts";
import { reportKeys } from "../wiring/report-keys.ts";
import { leaveListener } from "../wiring/leave-listener.ts";
import { startListener } from "../wiring/start-listener.ts";

/** Longer than it takes to make a connection whose packets were lost once. */
const settleMs = 1_500;

/** What serves calls: the data listener, the keys in memory, the call and its upstreams. */
export class DataServer implements AsyncDisposable {
  readonly #options: DataServerOptions;
  readonly #running: RunningCalls;
  readonly #keyRing: KeyRing;
  readonly #services: BuiltServices;
  readonly #limits: ProcessLimits;
  readonly #repeatable: RepeatableCalls;
  #config: Config;
  #edge: EdgeSettings;
  #snapshot: Snapshot;
  #listener: Listener | undefined;

  constructor(options: DataServerOptions) {
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
    this.#limits = openLimits(options, this.#keyRing);
    this.#services = this.#buildServices();
    this.#repeatable = new RepeatableCalls({
      store: control.claims,
      clock,
      running: this.#running,
      peppers,
      random: randomBytes,
      settings: () => this.#config.idempotency,
      onAnswer: telemetry.metrics.answered,
    });
    this.#followConfig();
    telemetry.metrics.followPools(() => this.#services.capacity.views());
  }

  get url(): string {
    return this.#listener?.url ?? "";
  }

  /** Requests being handled. */
  get openRequests(): number {
    return this.#listener?.pendingRequests ?? 0;
  }

  /** Open requests, or calls that continue without one. */
  get openCalls(): number {
    return Math.max(this.openRequests, this.#running.size);
  }

  /**
   * Serves its connections until they are closed, or the timeout has passed, while another data
   * server gets the new ones. Calls may still be running afterwards.
   */
  leave(timeoutMs: number): Promise<void> {
    const { shutdown } = this.#options;
    this.#limits.leave();
    // Where connections cannot be counted, callers may return on any of them.
    const countOpen = ({ connections }: Listener): number => connections ?? 1;
    return leaveListener(this.#listener, { shutdown, countOpen, timeoutMs, settleMs });
  }

  /** Age of the keys in memory; it grows while the database cannot be read. */
  get keysAgeMs(): number {
    return this.#keyRing.ageMs;
  }

  /** What it reports about itself and its process. */
  get facts(): OwnFacts {
    return {
      ...ownFacts(this.#services.overload.loop),
      degraded: whyDegraded(this.#keyRing, this.#limits.isAlone()),
      openCalls: this.openCalls,
      calls: this.#running.entered,
      spoolBytes: this.#options.ledger.spoolBytes,
      keysGeneration: this.#keyRing.epoch,
    };
  }

  /** Loads the keys, restores the limits and listens. Throws when the address is taken. */
  async start(): Promise<void> {
    const { ledger } = this.#options;
    await this.#keyRing.start();
    ledger.start();
    await this.#limits.start();
    this.#reportKeys();
    this.#listener = this.#listen();
    this.#services.overload.start();
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
    this.#reportKeys();
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
    await this.#listener?.cut();
    await shutdown.settle(() => this.#running.size);
    await this.#repeatable.close();
    this.#keyRing.stop();
    await this.#limits.close();
    await this.#options.ledger.shutDown();
  }

  #makeSnapshot(config: Config, before?: Replaced): Snapshot {
    const { telemetry, overrides } = this.#options;
    const hooks = [...buildHooks(config, telemetry.events), ...(overrides.hooks ?? [])];
    return buildSnapshot(config, { services: adapterServices(this.#options), hooks }, before);
  }

  /** The keys are the same in all processes. */
  #reportKeys(): void {
    const { number = 1, telemetry } = this.#options;
    if (number === 1) reportKeys(this.#config, this.#keyRing, telemetry.events);
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
    const { config, clock, ledger, telemetry, overrides } = this.#options;
    return buildServices({
      ...overrides,
      limits: this.#limits.store,
      sharing: this.#limits.sharing,
      config,
      clock,
      ledger,
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
    const { telemetry, clock, randomBytes, shutdown } = this.#options;
    const { overload, count } = this.#services;
    return startListener({
      address: this.#config.listen.data,
      routes: this.#routes(),
      edge: () => this.#edge,
      keyed: {
        snapshot: () => this.#snapshot,
        authenticate: this.#createAuthenticate(),
        count,
        overload,
      },
      idleTimeoutMs: this.#config.http.idleTimeoutMs,
      events: telemetry.events,
      refusals: this.#options.refusals,
      clock,
      newRequestId: requestIds(() => clock.now(), randomBytes),
      portUse: this.#options.portUse,
      shutdown,
    });
  }

  #createAuthenticate(): KeyedAccess["authenticate"] {
    const { control, peppers, clock, telemetry } = this.#options;
    return (form) =>
      createAuthenticate({
        form,
        peppers,
        clock,
        secrets: this.#keyRing,
        snapshotMaxAgeMs: this.#config.auth.snapshotMaxAgeMs,
        plans: () => this.#snapshot.plans,
        onUsed: (publicId, at) => control.noteUse(publicId, at),
        onOutdated: (secret) => control.renewDigest(secret),
        onPlanMissing: (keyId, plan) => telemetry.events.planMissing(keyId, plan),
      });
  }

  #routes(): RouteTable {
    const { surfaces } = this.#options.overrides;
    const settings = () => buildApiSettings(this.#config);
    const parts = { services: this.#services, settings, repeats: this.#repeatable };
    const whyNotReady = (): string | undefined => this.whyNotReady();
    const lack = (): string | undefined => howDegraded(this.#keyRing);
    return new RouteTable(dataRoutes({ ...parts, surfaces, whyNotReady, howDegraded: lack }));
  }
}
