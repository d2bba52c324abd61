import { SharedSlots } from "../../admission/capacity/shared/shared-slots.ts";
import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import { parseValkeyUrl } from "../../domain/addresses.ts";
import type { LimitStore } from "../../store/limits/limit-store.ts";
import { ValkeyClient } from "../../store/limits/valkey/client.ts";
import { ValkeyLimits } from "../../store/limits/valkey/limit-store.ts";
import { createProcessCount } from "../../store/limits/valkey/process-count.ts";
import { ValkeySlots } from "../../store/limits/valkey/slot-store.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";

/** The limits of a process that shares them with others. */
export interface SharedLimitStore extends LimitStore {
  /** What the processes share about targets. */
  readonly sharing: SharedSlots;
  /** Whether this process grants its share, because the server does not answer or has lost data. */
  isAlone(): boolean;
  /** Connects; the process serves calls even if that fails. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export type ValkeyStore = Exclude<Config["limits"]["store"], "memory">;

export interface ValkeyLimitParts {
  readonly config: Pick<Config, "processes" | "dataDir">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly telemetry: Telemetry;
}

/** Limits and slots in the server of the configuration. */
export function openValkeyLimits(store: ValkeyStore, parts: ValkeyLimitParts): SharedLimitStore {
  const { clock, random, telemetry, config } = parts;
  const { name, timeoutMs } = store;
  const { storage: events, metrics } = telemetry;
  const client = clientOf(store, timeoutMs);
  const process = crypto.randomUUID();
  const processes = createProcessCount({ dataDir: config.dataDir, own: config.processes, clock });
  const limits = new ValkeyLimits({
    client,
    clock,
    random,
    process,
    processes,
    timeoutMs,
    onAlone: (reason) => events.shares.failedAnew({ store: name, reason }),
    onShared: () => events.shares.end({ store: name }),
    onAccountLost(account, why) {
      events.limitsLost(name, account, why);
      metrics.counters.add("sluice_limits_lost_total", []);
    },
    onError: (error) => events.decisions.failed(error, { store: name }),
  });
  const { trust } = limits;
  const slots = new SharedSlots({
    clock,
    store: new ValkeySlots({ client, trust, process, processes }),
  });
  const isAlone = (): boolean => !trust.decides;
  metrics.followLimits(isAlone);
  return Object.assign(limits, {
    sharing: slots,
    isAlone,
    start: async (): Promise<void> => {
      await client.open();
      await limits.begin();
    },
    close: async (): Promise<void> => {
      await slots.close();
      await limits.end();
      client.close();
    },
  });
}

export function clientOf({ url, authorities }: ValkeyStore, timeoutMs: number): ValkeyClient {
  const address = parseValkeyUrl(url.reveal());
  if (address === undefined) throw new TypeError("limits.store was not checked");
  return new ValkeyClient({ address, authorities, timeoutMs });
}
