import type { KeyRing } from "../keys/key-ring.ts";
import type { LimitStore } from "../store/limits/limit-store.ts";
import { HandOver } from "./hand-over.ts";
import { LimitsSnapshot } from "./limits-snapshot.ts";
import { OwnLimits } from "./own-limits.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../domain/clock.ts";
import { spoolRoot } from "../ledger/spool/process-folder.ts";
import type { SpoolWriter } from "../ledger/spool/spool-writer.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { ProcessLimits } from "./wiring/open-valkey-limits.ts";

export interface LimitsOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly ledger: SpoolWriter;
  readonly keys: Pick<KeyRing, "limitScopeOf">;
  /** Set when the limits are shared with other processes. */
  readonly sharedLimits?: ProcessLimits | undefined;
  readonly overrides: { readonly random?: () => number; readonly limits?: LimitStore };
}

export function openLimits(options: LimitsOptions): ProcessLimits {
  const { telemetry, overrides, sharedLimits } = options;
  if (sharedLimits !== undefined) return sharedLimits;
  telemetry.metrics.follow({ sluice_limits_degraded: () => 0 });
  return overrides.limits === undefined ? limitsInMemory(options) : fixedLimits(overrides.limits);
}

function fixedLimits(store: LimitStore): ProcessLimits {
  const nothing = async (): Promise<void> => undefined;
  const read: ProcessLimits["read"] = () => [];
  return { store, read, sharing: undefined, start: nothing, close: nothing };
}

function limitsInMemory(options: LimitsOptions): ProcessLimits {
  const { config, clock, telemetry, overrides, ledger, keys } = options;
  const { random = Math.random } = overrides;
  const { dataDir } = config;
  const limits = new OwnLimits({ clock, random });
  const onFailed = (error: unknown): void => telemetry.storage.keptLimits.failed(error);
  const snapshot = new LimitsSnapshot({
    root: spoolRoot(dataDir),
    spool: ledger,
    limits,
    clock,
    keys,
    onFailed,
  });
  const onGiven = (): void => void snapshot.keep();
  const handOver = new HandOver({ dataDir, limits, clock, onGiven, onFailed });
  return {
    store: limits,
    read: limits.read,
    chargesAs: limits.process,
    updateSpend: (note) => limits.updateSpend(note),
    reservedNano: () => limits.reservedNano,
    sharing: undefined,
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
): Promise<ProcessLimits | undefined> {
  const { store } = options.config.limits;
  if (store === "memory") return undefined;
  const { openValkeyLimits } = await import("./wiring/open-valkey-limits.ts");
  const { random = Math.random } = options.overrides;
  return openValkeyLimits(store, { ...options, random });
}
