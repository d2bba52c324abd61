import { join } from "node:path";
import type { App, AppOverrides } from "../../src/app.ts";
import type { Config } from "../../src/config/config.ts";
import type { AdminServices } from "../../src/control/services.ts";
import { ControlProcess } from "../../src/process/control/control-process.ts";
import { WorkerProcess } from "../../src/process/worker/worker-process.ts";
import type { TelemetryEvents } from "../../src/telemetry/events/events.ts";
import { noLog } from "../../src/telemetry/log/log-output.ts";

/** A gateway of a test, in one process. */
export interface TestApp extends Omit<App, "reconfigure"> {
  /** Resolves when all workers have it. */
  reconfigure(config: Config): void | Promise<void>;
}

/** Builds control and several workers in this process, joined by their socket. */
export async function createCluster(
  config: Config,
  overrides: AppOverrides = {},
): Promise<TestApp> {
  const cluster = new Cluster(config, overrides);
  try {
    await cluster.start();
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
  return cluster;
}

/** Each worker has a port of its own, so that a test's calls go to all of them in turn. */
class Cluster implements TestApp {
  /** What a feed says is the position of its configuration. */
  readonly #configs: Config[];
  #onRead = (): void => undefined;
  readonly #control: ControlProcess;
  readonly #workers: readonly WorkerProcess[];
  #calls = 0;

  constructor(config: Config, overrides: AppOverrides) {
    const { log = noLog, onBootstrapToken = (): undefined => undefined } = overrides;
    const socket = join(config.dataDir, "control.sock");
    const path = undefined;
    const feed = { text: "0", path };
    this.#configs = [config];
    this.#control = new ControlProcess({
      config,
      feed,
      socket,
      log,
      onBootstrapToken,
      overrides,
    });
    this.#workers = Array.from(
      { length: config.processes },
      (_, index) =>
        new WorkerProcess({
          number: index + 1,
          socket,
          log,
          configOf: ({ text }) => {
            this.#onRead();
            return this.#configs[Number(text)];
          },
          overrides,
        }),
    );
  }

  /** Of the next worker. */
  get dataUrl(): string {
    this.#calls += 1;
    return this.#workers[this.#calls % this.#workers.length]?.url ?? "";
  }

  get adminUrl(): string {
    return this.#control.adminUrl;
  }

  get events(): TelemetryEvents {
    return this.#control.events;
  }

  get admin(): AdminServices {
    return this.#control.admin;
  }

  async start(): Promise<void> {
    await this.#control.start();
    for (const worker of this.#workers) await worker.start(await worker.readConfig());
    await this.#control.serving;
  }

  async reconfigure(config: Config): Promise<void> {
    this.#configs.push(config);
    const { promise, resolve } = Promise.withResolvers<void>();
    let readers = 0;
    this.#onRead = () => {
      readers += 1;
      if (readers === this.#workers.length) resolve();
    };
    this.#control.reconfigure(config, String(this.#configs.length - 1));
    await promise;
  }

  flushUsage(): Promise<void> {
    return this.#control.flushUsage();
  }

  async drain({ isAnnounced = true } = {}): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.drain({ isAnnounced })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker[Symbol.asyncDispose]()));
    await this.#control[Symbol.asyncDispose]();
  }
}
