import type { Config } from "../../../config/config.ts";
import type { CapacityOptions } from "../../../admission/capacity/capacity.ts";
import type { Clock } from "../../../domain/clock.ts";
import { MemoryJoins } from "../../../store/coordinator/memory/joins.ts";
import { KeyRing } from "../../../keys/key-ring.ts";
import {
  createMemoryLimitStore,
  type MemoryLimitStore,
} from "../../../store/coordinator/memory/limit-store.ts";
import type { KeyStore } from "../../../store/store.ts";
import type { UsageReports } from "../../../store/usage-reports.ts";
import type { Handlers, Link } from "../../link/link.ts";
import type { ControlMessages, CoordinationMessages, WorkerMessages } from "../../link/messages.ts";
import { limitStoreBounds } from "../../wiring/build-services.ts";
import { restoreWindows } from "../../wiring/restore-windows.ts";
import { HealthHints } from "./health-hints.ts";
import { joinHandlers } from "./join-handlers.ts";
import { limitHandlers } from "./limit-handlers.ts";
import { PlaceCoordination, type PlaceConfig } from "./place-coordination.ts";

export interface CoordinationOptions {
  readonly config: Pick<Config, "plans" | "workers"> & PlaceConfig;
  readonly clock: Clock;
  readonly random: () => number;
  readonly reports: Pick<UsageReports, "admitted">;
  readonly keys: Pick<KeyStore, "loadKeys">;
  readonly onWaited: NonNullable<CapacityOptions["onWaited"]>;
}

/** Interval between looks for changed keys; changes are announced besides. */
const keyPollMs = 500;

export type NotesToWorker = Pick<Link<ControlMessages, WorkerMessages>, "tell">;

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
  readonly #limits: MemoryLimitStore;
  readonly #joins: MemoryJoins;
  #ready: Promise<void> | undefined;
  /** For the units of pools that keys have. */
  readonly #keys: KeyRing;
  readonly #places: PlaceCoordination;
  readonly #hints = new HealthHints();

  constructor(options: CoordinationOptions) {
    const { clock, random, config, onWaited } = options;
    this.#options = options;
    this.#limits = createMemoryLimitStore({ clock, random, ...limitStoreBounds });
    this.#joins = new MemoryJoins(clock);
    this.#keys = new KeyRing({
      store: options.keys,
      clock,
      intervalMs: keyPollMs,
      onReloaded: () => undefined,
      onChanged: () => this.#places.capacity.unitsChanged(),
      // The workers report it.
      onReloadFailed: () => undefined,
    });
    const units = this.#keys;
    this.#places = new PlaceCoordination({
      clock,
      config,
      workers: config.workers,
      limits: this.#limits,
      units,
      onWaited,
    });
  }

  /** Reads the keys and restores the limits; to be called before workers connect. */
  async start(): Promise<void> {
    const { config, clock, reports } = this.#options;
    // A damaged database may still have its keys.
    await this.#keys.start();
    await restoreWindows({ limits: this.#limits, clock, reports, plans: config.plans });
    this.#ready = new Promise((resolve) => {
      clock.schedule(() => {
        this.#ready = undefined;
        resolve();
      }, reportMs);
    });
  }

  stop(): void {
    this.#keys.stop();
  }

  reloadKeys(): Promise<void> {
    return this.#keys.reload();
  }

  reconfigure(config: PlaceConfig): void {
    this.#places.follow(config);
  }

  /** Calls that hold places of pools, or wait for them. */
  poolViews(): ReturnType<PlaceCoordination["capacity"]["views"]> {
    return this.#places.capacity.views();
  }

  ofWorker(link: () => NotesToWorker): WorkerCoordination {
    const joins = this.#joins.ofProcess();
    const hints = this.#hints.ofWorker((hint) => link().tell("health.changed", hint));
    const places = this.#places.newDesk({
      ready: () => this.#ready,
      tellLent: (lent) => link().tell("places.lent", lent),
    });
    return {
      handlers: {
        ...limitHandlers(this.#limits),
        ...places.handlers,
        ...hints.handlers,
        ...this.#places.routing.handlers,
        ...joinHandlers(joins, () => this.#ready),
      },
      end() {
        places.end();
        hints.end();
        joins.end();
      },
    };
  }
}
