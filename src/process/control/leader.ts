import { CorsPolicy } from "../../edge/cors.ts";
import type { Config } from "../../config/config.ts";
import { configWarnings } from "../../config/problems/warnings.ts";
import type { AdminServices } from "../../control/services.ts";
import type { Passwords } from "../../control/sign-in/guard/passwords.ts";
import type { Clock } from "../../domain/clock.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { RouteTable } from "../../edge/dispatch/route-table.ts";
import type { Listener, PortUse } from "../../edge/listen.ts";
import type { Shutdown } from "../../edge/shutdown.ts";
import type { RefusalLog } from "../../admission/refusals/refusal-log.ts";
import { adminRoutes } from "../../control/admin-routes.ts";
import type { OwnProcessRow } from "../../store/process-row.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { ToControl, ToMain } from "../messages.ts";
import type { ThreadLink } from "../thread-link.ts";
import { buildEdge } from "../wiring/build-snapshot.ts";
import { createAdminPlane } from "./admin-plane.ts";
import type { LeaderJobs } from "../wiring/open-storage.ts";
import { startListener } from "../wiring/start-listener.ts";

export interface LeaderOptions {
  readonly link: ThreadLink<ToMain, ToControl>;
  readonly clock: Clock;
  readonly portUse: PortUse;
  /** The process whose end ends the gateway. */
  readonly pid: number;
  readonly number: number;
  readonly passwords?: Passwords | undefined;
  readonly config: Config;
  readonly telemetry: Telemetry;
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

/** Delay before retrying what the database, or a full disk, does not allow. */
const retryMs = 1_000;
/** How long the listener of a process that no longer leads waits for its successor's. */
const successionMs = 1_000;
/** Longest wait for open requests once a successor listens. */
const lastRequestsMs = 5_000;

/** What one process of a machine does for all: admin listener, ingest and the other jobs. */
export class Leader {
  readonly #options: LeaderOptions;
  readonly #plane: ReturnType<typeof createAdminPlane>;
  readonly #end = new AbortController();
  #config: Config;
  #listener: Listener | undefined;
  #hasStarted = false;

  constructor(options: LeaderOptions) {
    const { config, telemetry, link } = options;
    this.#options = options;
    this.#config = config;
    this.#plane = createAdminPlane({
      ...options,
      events: telemetry.events,
      publicUrl: () => config.admin.publicUrl ?? this.url,
      onBootstrapToken: (token) => link.tell("bootstrap", token),
    });
  }

  get url(): string {
    return this.#listener?.url ?? "";
  }

  get ticketDigest(): string {
    return this.#plane.ticketDigest;
  }

  get ingest(): OwnProcessRow["ingest"] {
    return this.#options.jobs.ingest.isBehind ? "behind" : "done";
  }

  get jobs(): LeaderJobs {
    return this.#options.jobs;
  }

  reconfigure(config: Config): void {
    this.#config = config;
  }

  /** Throws when the address of the admin listener is taken. */
  async start(): Promise<void> {
    const { clock, jobs, refusals, shutdown, portUse } = this.#options;
    const { events } = this.#options.telemetry;
    const { local, bootstrap, gate, routes: control } = this.#plane;
    // Pages from other origins must not use the control plane.
    const cors = new CorsPolicy([]);
    this.#listener = startListener({
      address: this.#config.listen.admin,
      routes: new RouteTable(adminRoutes({ ...this.#options, control }), "admin"),
      gate,
      edge: () => ({ ...buildEdge(this.#config), cors }),
      idleTimeoutMs: this.#config.http.idleTimeoutMs,
      events,
      refusals,
      shutdown,
      portUse,
      clock,
    });
    this.#hasStarted = true;
    const startedAt = clock.now();
    for (const warning of configWarnings(this.#config, startedAt)) events.configNotice(warning);
    // Without the file, or with that of a process that has ended, no command reaches the gateway.
    await this.#untilDone(
      () => local.write({ url: this.url, startedAt }),
      (error) => events.localAccessFailed(error),
    );
    jobs.start();
    // The pollers of the database report its outage.
    await this.#untilDone(() => bootstrap.start());
  }

  /** Tries once, and then each second until it works. `onFailed`: called the first time. */
  async #untilDone(work: () => Promise<void>, onFailed?: (error: unknown) => void): Promise<void> {
    try {
      await work();
    } catch (error) {
      onFailed?.(error);
      const { signal } = this.#end;
      const retry = (): unknown => signal.aborted || this.#untilDone(work);
      void wait(retryMs, signal, this.#options.clock).then(retry);
    }
  }

  /** Ends the jobs; the listener serves on for a moment, until another process has one. */
  async leave(): Promise<void> {
    this.#plane.live.close();
    await this.#options.jobs.stop();
    void this.#leaveListener();
  }

  async stop(): Promise<void> {
    this.#plane.live.close();
    await this.#listener?.cut();
    await this.#options.jobs.stop();
    await this.#close();
    if (this.#hasStarted) this.#options.telemetry.events.stopped();
  }

  async #leaveListener(): Promise<void> {
    const { shutdown } = this.#options;
    const listener = this.#listener;
    if (listener === undefined) return;
    await listener.retire(successionMs);
    await shutdown.leave(() => listener.pendingRequests, lastRequestsMs);
    await this.#close();
  }

  async #close(): Promise<void> {
    this.#end.abort();
    await this.#listener?.cut();
    await this.#plane.local.remove().catch(() => undefined);
  }
}
