import { Fleet } from "../../../store/coordinator/valkey/fleet/fleet.ts";
import { SharedLimits } from "../../../store/coordinator/valkey/limits/shared-limits.ts";
import { limitStoreBounds } from "../build-services.ts";
import { connectLimitStore, type ValkeyStore } from "./connect-limit-store.ts";
import { newSharedCoordinator } from "./shared-coordinator.ts";
import { sharedScripts } from "./shared-scripts.ts";
import type { SharedLimitParts, SharedLimitStore } from "./shared-limit-store.ts";

/** The limits in the server of the configuration, and the worker's own share while it is away. */
export function openValkeyLimits(
  store: ValkeyStore,
  parts: SharedLimitParts & { readonly ownWorkers: number },
): SharedLimitStore {
  const { clock, random, telemetry, ownWorkers } = parts;
  const { name, timeoutMs } = store;
  const connection = connectLimitStore(store, { timeoutMs, clock, scripts: sharedScripts });
  const { storage: events, metrics } = telemetry;
  const limits = new SharedLimits({
    connection,
    clock,
    random,
    ...limitStoreBounds,
    workers: () => fleet.workers,
    onError: (error) => events.limitsFailed(name, error),
    isTrusted: () => fleet.isTrusted,
    validSince: () => fleet.validSince,
    onLost: () => void fleet.check(),
  });
  const fleet = new Fleet({
    connection,
    clock,
    ownWorkers,
    worker: crypto.randomUUID(),
    onBeat: () => limits.catchUp(),
    onError: (error) => events.limitsFailed(name, error),
    onLoss() {
      events.limitsLost(name);
      limits.restore();
    },
  });
  connection.onChange((reason) => {
    if (reason === undefined) events.limitsShared(name);
    else {
      fleet.away();
      events.limitsAlone(name, reason);
    }
    void fleet.check();
  });
  const isAlone = (): boolean => !connection.isUp || !fleet.isTrusted;
  metrics.followLimits(isAlone);
  const coordinator = newSharedCoordinator(connection, { clock, fleet });
  return Object.assign(limits, {
    coordinator,
    isAlone,
    async start(): Promise<void> {
      await connection.open();
      await fleet.start();
    },
    async close(): Promise<void> {
      await limits.end();
      await coordinator.close();
      await fleet.close();
      connection.close();
    },
  });
}
