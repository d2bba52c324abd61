import type { Config } from "../../../config/config.ts";
import type { Clock } from "../../../domain/clock.ts";
import { MemoryJoins } from "../../../store/coordinator/memory/joins.ts";
import { createMemoryLimitStore } from "../../../store/coordinator/memory/limit-store.ts";
import type { LimitStore } from "../../../store/store.ts";
import type { UsageReports } from "../../../store/usage-reports.ts";
import type { Handlers } from "../../link/link.ts";
import type { CoordinationMessages } from "../../link/messages.ts";
import { limitStoreBounds } from "../../wiring/build-services.ts";
import { restoreWindows } from "../../wiring/restore-windows.ts";
import { joinHandlers } from "./join-handlers.ts";
import { limitHandlers } from "./limit-handlers.ts";

export interface CoordinationOptions {
  readonly config: Pick<Config, "plans">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly reports: Pick<UsageReports, "admitted">;
}

/** What control does for one worker. */
export interface WorkerCoordination {
  readonly handlers: Handlers<CoordinationMessages>;
  /** Releases what the worker holds, when it has gone. */
  end(): void;
}

/** Time for the workers of an earlier control process to connect and tell what they hold. */
const reportMs = 500;

/** What all workers share, where there are several: decided here, one round trip each. */
export class Coordination {
  readonly #options: CoordinationOptions;
  readonly #limits: LimitStore;
  readonly #joins: MemoryJoins;
  #ready: Promise<void> | undefined;

  constructor(options: CoordinationOptions) {
    const { clock, random } = options;
    this.#options = options;
    this.#limits = createMemoryLimitStore({ clock, random, ...limitStoreBounds });
    this.#joins = new MemoryJoins(clock);
  }

  /** Restores the limits from the ledger; to be called before workers connect. */
  async start(): Promise<void> {
    const { config, clock, reports } = this.#options;
    await restoreWindows({ limits: this.#limits, clock, reports, plans: config.plans });
    this.#ready = new Promise((resolve) => {
      clock.schedule(() => {
        this.#ready = undefined;
        resolve();
      }, reportMs);
    });
  }

  ofWorker(): WorkerCoordination {
    const joins = this.#joins.ofProcess();
    return {
      handlers: {
        ...limitHandlers(this.#limits),
        ...joinHandlers(joins, () => this.#ready),
      },
      end: () => joins.end(),
    };
  }
}
