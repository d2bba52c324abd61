import type { Config } from "../../config/config.ts";
import type { NewSharedLimits } from "./open-valkey-limits.ts";

/** Undefined with `limits.store: memory`: then nothing of the shared store is even loaded. */
export async function loadSharedLimits(
  config: Pick<Config, "limits" | "processes" | "dataDir">,
): Promise<NewSharedLimits | undefined> {
  const { limits, processes: ownProcesses, dataDir } = config;
  const { store } = limits;
  if (store === "memory") return undefined;
  const { openValkeyLimits } = await import("./open-valkey-limits.ts");
  return (parts) => openValkeyLimits(store, { ...parts, ownProcesses, dataDir });
}
