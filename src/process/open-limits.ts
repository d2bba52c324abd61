import { join } from "node:path";
import type { KeyRing } from "../keys/key-ring.ts";
import type { LimitStore } from "../store/limits/limit-store.ts";
import { HandOver } from "./hand-over.ts";
import { LimitsSnapshot } from "./limits-snapshot.ts";
import { OwnLimits } from "./own-limits.ts";
import type { SharedSlots } from "../admission/capacity/shared/shared-slots.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../domain/clock.ts";
import type { SpoolWriter } from "../ledger/spool/spool-writer.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { SharedLimitStore } from "./wiring/open-valkey-limits.ts";

/** The limits of a process, and their way to the next one. */
export interface ProcessLimits {
  readonly store: LimitStore;
  /** What the process shares with others about targets; undefined: nothing. */
  readonly sharing: SharedSlots | undefined;
  /** Whether it decides alone about limits that are shared. */
  isAlone(): boolean;
  /** Call before the first decision. */
  start(): Promise<void>;
  /** A successor serves new connections. */
  leave(): void;
  /** Called when all calls are settled. */
  close(): Promise<void>;
}

export interface LimitsOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly ledger: SpoolWriter;
  readonly keys: Pick<KeyRing, "limitScopeOf">;
  /** Set when the limits are shared with other processes. */
  readonly sharedLimits?: SharedLimitStore | undefined;
  readonly overrides: { readonly random?: () => number; readonly limits?: LimitStore };
}

export function openLimits(options: LimitsOptions): ProcessLimits {
  const { telemetry, overrides, sharedLimits: store } = options;
  if (store !== undefined) {
    return {
      store,
      sharing: store.sharing,
      isAlone: () => store.isAlone(),
      start: () => store.start(),
      leave: () => undefined,
      close: () => store.close(),
    };
  }
  telemetry.metrics.followLimits(() => false);
  if (overrides.limits !== undefined) return fixedLimits(overrides.limits);
  return limitsInMemory(options);
}

function fixedLimits(store: LimitStore): ProcessLimits {
  const nothing = (): undefined => undefined;
  const soon = async (): Promise<void> => undefined;
  const isAlone = (): boolean => false;
  return { store, sharing: undefined, isAlone, start: soon, leave: nothing, close: soon };
}

function limitsInMemory(options: LimitsOptions): ProcessLimits {
  const { config, clock, telemetry, overrides, ledger, keys } = options;
  const { random = Math.random } = overrides;
  const { dataDir } = config;
  const limits = new OwnLimits({ clock, random });
  const onFailed = (error: unknown): void => telemetry.storage.keptLimits.failed(error);
  const snapshot = new LimitsSnapshot({
    root: join(dataDir, "spool"),
    spool: ledger,
    limits,
    clock,
    limitScopeOf: (keyId) => keys.limitScopeOf(keyId),
    onFailed,
  });
  const onGiven = (isGiven: boolean): void => void snapshot.given(isGiven);
  const handOver = new HandOver({ dataDir, limits, clock, onGiven, onFailed });
  return {
    store: limits,
    sharing: undefined,
    isAlone: () => false,
    async start() {
      if (!(await handOver.take())) snapshot.restore();
      await snapshot.start();
      handOver.offer();
    },
    leave: () => handOver.leave(),
    async close() {
      await snapshot.stop();
      await handOver.stop();
    },
  };
}

/** Undefined with `limits.store: memory`: then nothing of the shared store is even loaded. */
export async function openSharedLimits(
  options: Pick<LimitsOptions, "config" | "clock" | "telemetry" | "overrides">,
): Promise<SharedLimitStore | undefined> {
  const { store } = options.config.limits;
  if (store === "memory") return undefined;
  const { openValkeyLimits } = await import("./wiring/open-valkey-limits.ts");
  const { random = Math.random } = options.overrides;
  return openValkeyLimits(store, { ...options, random });
}
