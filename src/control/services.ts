import type { SettingInUse } from "../config/effective-settings.ts";
import type { RandomBytes } from "../domain/keys/base62.ts";
import type { LimitScope, LimitState } from "../domain/limits/limit-scope.ts";
import type { LiveFacts, WantedKeys } from "../domain/live-facts.ts";
import type { Pool } from "../domain/limits/capacity.ts";
import type { Clock } from "../domain/clock.ts";
import type { Model } from "../domain/model.ts";
import type { ProcessStatus } from "./platform/process-status.ts";
import type { ProcessRow } from "../store/process-row.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import type { Plan } from "../domain/limits/plan.ts";
import type { StoredEndUsers } from "../domain/upstream-settings.ts";
import type { Refusal, RefusalFilter } from "../domain/errors/refusal.ts";
import type { ControlStore } from "../store/repositories/control-store.ts";
import type { PriceTables, UsageStore } from "../store/store.ts";
import type { CostStore } from "../store/costs.ts";
import type { UsageReports } from "../store/usage-reports.ts";

/** The dependencies of the operations; `app.ts` makes them once. */
export interface AdminServices {
  readonly store: Omit<ControlStore, "prune">;
  readonly reports: Omit<UsageReports, "admitted">;
  readonly usage: Pick<UsageStore, "erase" | "eraseEndUsers">;
  readonly prices: PriceTables;
  readonly costs: CostStore;
  readonly refusals: RefusalFinder;
  readonly live: LiveReader;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly peppers: Peppers;
  /** The current configuration, which a reload changes. */
  readonly platform: () => Platform;
  /** The configuration that this process has loaded. */
  readonly configuration: () => ConfigurationInUse;
  /** The processes of this machine; empty if none is running. */
  readonly processes: () => Promise<readonly ProcessStatus[]>;
  /** When a secret was last used, if that is not stored yet. */
  readonly lastUse: (publicId: string) => number | undefined;
  /**
   * Applies changed keys in this process, and waits up to a second for the others on the database.
   * Undefined if nobody can tell how many have applied them.
   */
  readonly onKeysChanged: () => Promise<KeysApplied | undefined>;
  /** The processes on the database; empty if none is running. Throws `StorageUnavailable`. */
  readonly processRows: () => Promise<readonly ProcessRow[]>;
  /** As they were in the last second, for who asks often: it writes nothing. */
  readonly lastProcessRows: () => Promise<readonly ProcessRow[]>;
}

export type RunServices = Pick<
  AdminServices,
  "store" | "clock" | "random" | "peppers" | "onKeysChanged"
>;

export interface ConfigurationInUse {
  /** Of the file; undefined: the built-in demo. */
  readonly path: string | undefined;
  /** Milliseconds since the epoch. */
  readonly loadedAt: number;
  readonly settings: readonly SettingInUse[];
}

/** The part of the configuration that the control plane checks against. */
export interface Platform {
  readonly environments: readonly PlatformEnvironment[];
  /** By name. */
  readonly plans: ReadonlyMap<string, Plan>;
  /** By name. */
  readonly pools: ReadonlyMap<string, PlatformPool>;
  readonly endUsers: StoredEndUsers;
}

export interface PlatformPool extends Pool {
  /** Models of each environment that have a target in it. */
  readonly models: readonly { readonly environment: string; readonly alias: string }[];
  /** Ids of those targets. */
  readonly targets: readonly string[];
}

export interface PlatformEnvironment {
  readonly name: string;
  readonly hosts: readonly string[];
  /** Undefined while only the system knows the port. */
  readonly baseUrl?: string | undefined;
  readonly models: readonly PlatformModel[];
}

export type PlatformModel = Pick<
  Model,
  "alias" | "kind" | "contextWindow" | "maxOutputTokens" | "targets" | "fallbacks"
>;

/** The last refusals that the gateway decided itself. */
export interface RefusalFinder {
  find(id: string): Promise<Refusal | undefined>;
  /** Newest first. */
  list(filter: RefusalFilter, limit: number): Promise<readonly Refusal[]>;
}

/** What the gateway processes of this machine know at this moment. */
export interface LiveReader {
  readonly machine: string;
  /**
   * Of each process that answers; with the keys of these secrets, and with those in use of these
   * accounts (undefined: of all), which have open calls or were used in the last minute. Never rejects.
   */
  facts(wanted: Pick<WantedKeys, "publicIds" | "accountIds">): Promise<readonly LiveFacts[]>;
  /** What is left under lists of scopes of one id each. Throws `StorageUnavailable`. */
  limits(of: readonly (readonly LimitScope[])[]): Promise<readonly LimitState[]>;
}

/** How many processes have a change of keys. */
export interface KeysApplied {
  readonly processes: number;
  /** All processes that give signs. */
  readonly of: number;
  /** Others that neither ended in order nor gave a sign lately. */
  readonly silent: number;
}
