import { CorsPolicy } from "../../edge/cors.ts";
import type { Config } from "../../config/config.ts";
import type { AdminServices } from "../../control/services.ts";
import type { Passwords } from "../../control/sign-in/guard/passwords.ts";
import type { Clock } from "../../domain/clock.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import { RouteTable } from "../../edge/dispatch/route-table.ts";
import type { Listener, PortUse } from "../../edge/listen.ts";
import type { Shutdown } from "../../edge/shutdown.ts";
import type { RefusalLog } from "../../admission/refusals/refusal-log.ts";
import { adminRoutes } from "../../routes.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { ToControl, ToMain } from "../messages.ts";
import type { ThreadLink } from "../thread-link.ts";
import { buildEdge } from "../wiring/build-snapshot.ts";
import { AdminPlane } from "./admin-plane.ts";
import type { LeaderJobs } from "../wiring/open-storage.ts";
import { startListener } from "../wiring/start-listener.ts";
import { requestIds } from "../request-ids.ts";

export interface LeaderOptions {
  readonly config: Config;
  readonly link: ThreadLink<ToMain, ToControl>;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly portUse: PortUse;
  /** The process whose end ends the gateway. */
  readonly pid: number;
  readonly passwords?: Passwords | undefined;
  readonly shutdown: Shutdown;
  readonly services: AdminServices;
  readonly jobs: LeaderJobs;
  readonly refusals: RefusalLog;
  readonly renderMetrics: () => Promise<string>;
  /** Undefined when this process can serve calls. */
  readonly whyNotReady: () => string | undefined;
  /** What the process lacks although it can serve; undefined: nothing. */
  readonly howDegraded: () => string | undefined;
}

/** How long the listener of a process that no longer leads waits for its successor's. */
const successionMs = 1_000;
/** Longest wait for open requests once a successor listens. */
const lastRequestsMs = 5_000;

/** What one process of a machine does for all: admin listener, ingest and the other jobs. */
export class Leader {
  readonly #options: LeaderOptions;
  readonly #plane: AdminPlane;
  #config: Config;
  #listener: Listener | undefined;
  #hasStarted = false;

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#config = options.config;
    const { config, services, pid, telemetry, passwords, link } = options;
    this.#plane = new AdminPlane({
      config,
      services,
      pid,
      events: telemetry.events,
      passwords,
      onBootstrapToken: (token) => link.tell("bootstrap", token),
    });
  }

  get url(): string {
    return this.#listener?.url ?? "";
  }

  get jobs(): LeaderJobs {
    return this.#options.jobs;
  }

  reconfigure(config: Config): void {
    this.#config = config;
  }

  /** Throws when the address of the admin listener is taken. */
  async start(): Promise<void> {
    const { clock, randomBytes, telemetry, shutdown, portUse, refusals, jobs } = this.#options;
    // Pages from other origins must not use the control plane.
    const cors = new CorsPolicy([]);
    this.#listener = startListener({
      address: this.#config.listen.admin,
      routes: this.#routes(),
      gate: this.#plane.gate,
      edge: () => ({ ...buildEdge(this.#config), cors }),
      idleTimeoutMs: this.#config.http.idleTimeoutMs,
      events: telemetry.events,
      refusals,
      clock,
      newRequestId: requestIds(() => clock.now(), randomBytes),
      shutdown,
      portUse,
    });
    this.#hasStarted = true;
    await this.#plane.start(this.url);
    jobs.start();
    await this.#plane.startBootstrap();
  }

  /** Ends the jobs; the listener serves on for a moment, until another process has one. */
  async leave(): Promise<void> {
    await this.#options.jobs.stop();
    void this.#leaveListener();
  }

  async stop(): Promise<void> {
    await this.#listener?.cut();
    await this.#options.jobs.stop();
    await this.#end();
    if (this.#hasStarted) this.#options.telemetry.events.stopped();
  }

  async #leaveListener(): Promise<void> {
    const { shutdown } = this.#options;
    const listener = this.#listener;
    if (listener === undefined) return;
    await listener.retire(successionMs);
    await shutdown.leave(() => listener.pendingRequests, lastRequestsMs);
    await this.#end();
  }

  async #end(): Promise<void> {
    await this.#listener?.cut();
    await this.#plane.stop();
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
