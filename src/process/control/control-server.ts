import type { Config } from "../../config/config.ts";
import type { AdminServices } from "../../control/services.ts";
import type { Clock } from "../../domain/clock.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import { requestIds } from "../../domain/request-trace.ts";
import { CorsPolicy } from "../../edge/cors.ts";
import { RouteTable } from "../../edge/dispatch/route-table.ts";
import type { Listener, PortUse } from "../../edge/listen.ts";
import type { Shutdown } from "../../edge/shutdown.ts";
import { Installation } from "../../store/installation/installation.ts";
import { adminRoutes } from "../../routes.ts";
import type { MetricsExport } from "../../telemetry/otlp/metrics-export.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { ControlPort } from "../control-port.ts";
import type { AppOverrides } from "../wiring/app-interface.ts";
import { buildEdge } from "../wiring/build-snapshot.ts";
import { ControlPlane, platformOf, type ControlPlaneOptions } from "../wiring/control-plane.ts";
import { openStorage, type Storage } from "../wiring/open-storage.ts";
import { keepProcessCount } from "../../store/limits/valkey/process-count.ts";
import { KeptRefusals } from "./refusals/kept-refusals.ts";
import { createOwnReplica, type ReplicaState } from "./replicas/own-replica.ts";
import { Replicas } from "./replicas/replicas.ts";
import type { Door } from "../wiring/door.ts";
import { leaveListener } from "../wiring/leave-listener.ts";
import { startListener } from "../wiring/start-listener.ts";

export interface ControlServerOptions {
  /** The process whose end ends the gateway. */
  readonly pid: number;
  readonly config: Config;
  readonly telemetry: Telemetry;
  readonly shutdown: Shutdown;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly shownToken?: ControlPlaneOptions["shownToken"];
  readonly onBootstrapToken: NonNullable<AppOverrides["onBootstrapToken"]>;
  readonly passwords?: AppOverrides["passwords"] | undefined;
  /** Resolves to whether every data server sees the changes of keys committed before. */
  readonly reloadKeys: () => Promise<boolean>;
  /** What other gateways on the database may know. */
  readonly replica: () => ReplicaState;
  readonly renderMetrics: () => string | Promise<string>;
  readonly processes: AdminServices["processes"];
  /** Rows that data servers have written and that are not stored yet, for the log. */
  readonly countWaiting: () => number;
  /** Undefined when a data server can serve. */
  readonly whyNotReady: () => string | undefined;
  /** What the gateway lacks although it can serve; undefined: nothing. */
  readonly howDegraded: () => string | undefined;
  readonly portUse?: PortUse | undefined;
  /** A listener that is already open at the admin address. */
  readonly door?: Door | undefined;
}

/** Longest wait for open requests, while new ones wait for a successor. */
const lastRequestsMs = 5_000;
/** Time for connections that are just being made when a successor begins to listen. */
const settleMs = 200;

/** The managing half of a gateway: the database, the admin listener, and answers to workers. */
export class ControlServer implements AsyncDisposable {
  readonly admin: AdminServices;
  /** For data servers in this process. */
  readonly port: ControlPort;
  readonly installation: Installation;
  readonly storage: Storage;
  readonly #options: ControlServerOptions;
  readonly #refusals: KeptRefusals;
  readonly #plane: ControlPlane;
  readonly #export: MetricsExport;
  readonly #replicas: Replicas;
  #config: Config;
  #listener: Listener | undefined;

  /** Throws if another process has the spool. The database is not opened yet. */
  constructor(options: ControlServerOptions) {
    const { config, clock, randomBytes, telemetry, onBootstrapToken } = options;
    this.#options = options;
    this.#config = config;
    this.#refusals = new KeptRefusals();
    this.installation = new Installation(config, { random: randomBytes, clock });
    const owner = this.installation;
    const settings = (): Config => this.#config;
    const { countWaiting } = options;
    this.storage = openStorage({ settings, clock, owner, telemetry, countWaiting });
    this.port = this.#createPort();
    this.#replicas = this.#createReplicas();
    this.admin = this.#createServices();
    this.#export = telemetry.exportOf({
      page: options.renderMetrics,
      kindOf: (alias) =>
        this.#config.environments.find(({ models }) => models.has(alias))?.models.get(alias)?.kind,
    });
    const { events } = telemetry;
    this.#plane = new ControlPlane({
      config,
      services: this.admin,
      pid: options.pid,
      events,
      passwords: options.passwords,
      shownToken: options.shownToken,
      onBootstrapToken,
    });
  }

  get url(): string {
    return this.#listener?.url ?? "";
  }

  reconfigure(config: Config): void {
    this.#config = config;
    this.#export.configure(config.telemetry.otlp);
  }

  /** Opens the admin listener, once the database is open. Throws when the address is taken. */
  async listen(): Promise<void> {
    const { clock, randomBytes, telemetry, shutdown, portUse, door } = this.#options;
    const { listen, http } = this.#config;
    // Pages from other origins must not use the control plane.
    const cors = new CorsPolicy([]);
    this.#listener = startListener({
      address: listen.admin,
      routes: this.#routes(),
      gate: this.#plane.gate,
      edge: () => ({ ...buildEdge(this.#config), cors }),
      idleTimeoutMs: http.idleTimeoutMs,
      events: telemetry.events,
      refusals: this.#refusals,
      clock,
      newRequestId: requestIds(() => clock.now(), randomBytes),
      shutdown,
      portUse,
      door,
    });
    await this.#plane.start(this.url);
    this.#replicas.start();
  }

  /**
   * Begins the work that reads all of the database, once the data servers have read the keys: a
   * damaged database may still have them.
   */
  async begin(): Promise<void> {
    this.storage.start();
    this.#export.configure(this.#config.telemetry.otlp);
    await this.#plane.startBootstrap();
  }

  /** Lets open requests end while another process gets the new ones. */
  leave(): Promise<void> {
    return leaveListener(this.#listener, {
      shutdown: this.#options.shutdown,
      countOpen: ({ pendingRequests }) => pendingRequests,
      timeoutMs: lastRequestsMs,
      settleMs,
    });
  }

  /** Aborts every connection of the admin listener. */
  async cut(): Promise<void> {
    await this.#listener?.cut();
  }

  /** Called after the last call has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.cut();
    await this.#export.stop();
    await this.#replicas.stop();
    await this.#plane.stop();
    await this.storage.close();
    if (this.#listener !== undefined) this.#options.telemetry.events.stopped();
  }

  #createPort(): ControlPort {
    const { keys, replies, lastUse, renewal } = this.storage;
    return {
      keys,
      claims: replies,
      noteUse: (publicId, at) => lastUse.note(publicId, at),
      renewDigest: (secret) => renewal.note(secret),
      recordRefusal: (refusal) => this.#refusals.record(refusal),
    };
  }

  #createReplicas(): Replicas {
    const { clock, randomBytes: random, reloadKeys, replica: state, telemetry } = this.#options;
    const { folder, peppers } = this.installation;
    const { storage: events } = telemetry;
    const adminUrl = (): string => this.#config.admin.publicUrl ?? this.url;
    const startedAt = clock.now();
    return new Replicas({
      store: this.storage.replicas,
      clock,
      own: createOwnReplica({
        folder,
        peppers,
        limitStore: this.#config.limits.store,
        random,
        startedAt,
        state,
        adminUrl,
      }),
      // Until then, a gateway that is cut off may still accept keys.
      keptMs: this.#config.auth.snapshotMaxAgeMs,
      reloadKeys,
      keepKeys: async (epoch) => this.storage.keyFile?.follow(epoch),
      onMessagesLost: (error) => events.keyMessagesLost(error),
      onMessagesBack: () => events.keyMessagesBack(),
      onCounted: (processes) => void keepProcessCount(this.#config.dataDir, processes),
      onDifference: (text) => events.replicasDiffer(text),
      onSame: () => events.replicasSame(),
    });
  }

  #createServices(): AdminServices {
    const { control: store, reports, usage, lastUse } = this.storage;
    const { clock, randomBytes, processes } = this.#options;
    return {
      store,
      reports,
      usage,
      refusals: this.#refusals,
      clock,
      random: randomBytes,
      peppers: this.installation.peppers,
      platform: () => platformOf(this.#config),
      processes,
      lastUse: (publicId) => lastUse.of(publicId),
      onKeysChanged: () => this.#replicas.applied(),
      replicas: () => this.#replicas.list(),
    };
  }

  #routes(): RouteTable {
    const { renderMetrics, whyNotReady, howDegraded } = this.#options;
    const { routes: control } = this.#plane;
    return new RouteTable(
      adminRoutes({ renderMetrics, whyNotReady, howDegraded, control }),
      "admin",
    );
  }
}
