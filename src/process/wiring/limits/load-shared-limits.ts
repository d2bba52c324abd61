import type { Config } from "../../../config/config.ts";
import type { NewSharedLimits } from "./shared-limit-store.ts";

/** Undefined with `limits.store: memory`: then nothing of the shared store is even loaded. */
export async function loadSharedLimits(
  config: Pick<Config, "limits" | "processes">,
): Promise<NewSharedLimits | undefined> {
  const { store } = config.limits;
  if (store === "memory") return undefined;
  const { openValkeyLimits } = await import("./open-valkey-limits.ts");
  return (parts) => openValkeyLimits(store, { ...parts, ownWorkers: config.processes });
}
