import { SharedSlots } from "../../admission/capacity/shared/shared-slots.ts";
import { passesByItself } from "../../control/platform/process-status.ts";
import type { Config } from "../../config/config.ts";
import type { SpendNote } from "../../domain/money/budget.ts";
import type { Clock } from "../../domain/clock.ts";
import { parseValkeyUrl } from "../../domain/addresses.ts";
import type { LiveFacts, ReadLimits } from "../../domain/live-facts.ts";
import type { LimitStore } from "../../store/limits/limit-store.ts";
import { BudgetTally } from "../../store/limits/budget-tally.ts";
import { ValkeyClient } from "../../store/limits/valkey/client.ts";
import { ValkeyLimits } from "../../store/limits/valkey/limit-store.ts";
import type { Trust } from "../../store/limits/valkey/trust.ts";
import { createProcessCount } from "../../store/limits/valkey/process-count.ts";
import { valkeySlots } from "../../store/limits/valkey/slot-store.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";

export interface ProcessLimits {
  readonly store: LimitStore;
  readonly read: ReadLimits;
  /** Names the process in the charges of its calls. */
  readonly chargesAs?: string;
  /** What is spent under budgets, as the control thread tells it. */
  updateSpend?(note: SpendNote): void;
  /** As in `LiveFacts`. */
  reservedNano?(): LiveFacts["reservedNano"];
  /** What the process shares with others about targets; undefined: nothing. */
  readonly sharing: SharedSlots | undefined;
  /** Why it grants only its share of shared limits, for operators; undefined: it grants them. */
  lack?(): string | undefined;
  /** Call before the first decision. The process serves calls even if a server does not answer. */
  start(): Promise<void>;
  /** A successor serves new connections. */
  leave?(): void;
  /** Called when all calls are settled. */
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
export function openValkeyLimits(store: ValkeyStore, parts: ValkeyLimitParts): ProcessLimits {
  const { clock, random, telemetry, config } = parts;
  const { name, timeoutMs } = store;
  const { storage: events, metrics } = telemetry;
  const client = clientOf(store, timeoutMs);
  const process = crypto.randomUUID();
  const tally = new BudgetTally(process);
  const processes = createProcessCount({ dataDir: config.dataDir, own: config.processes, clock });
  const limits = new ValkeyLimits({
    client,
    clock,
    random,
    tally,
    processes,
    timeoutMs,
    onAlone(reason, isFirstSight) {
      if (isFirstSight) events.limitsNew(name, reason);
      else events.shares.failedAnew({ store: name, reason });
    },
    onShared: () => events.shares.end({ store: name }),
    onAccountLost(account, why) {
      events.limitsLost(name, account, why);
      metrics.counters.of("sluice_limits_lost_total").value += 1;
    },
    onError: (error) => events.decisions.failed(error, { store: name }),
  });
  const { trust } = limits;
  const slots = new SharedSlots({
    clock,
    store: valkeySlots({ client, trust, process, processes }),
  });
  metrics.follow({ sluice_limits_degraded: () => (trust.decides ? 0 : 1) });
  return {
    store: limits,
    read: (of) => limits.read(of),
    chargesAs: process,
    updateSpend: (note) => limits.updateSpend(note),
    reservedNano: () => tally.reservedNano,
    sharing: slots,
    lack: () => lackOf(trust, clock),
    async start() {
      await client.open();
      await limits.begin();
    },
    async close() {
      await slots.close();
      await limits.end();
      client.close();
    },
  };
}

function lackOf(trust: Trust, clock: Clock): string | undefined {
  if (trust.decides) return undefined;
  if (!trust.answers) return "limits.store does not answer; limits are not shared";
  const seconds = Math.ceil((clock.now() + trust.waitMs) / 1_000);
  const until = new Date(seconds * 1_000).toISOString().slice(11, 19);
  return `limits.store is new or was lost; limits are shared again at ${until} UTC, ${passesByItself}`;
}

export function clientOf({ url, authorities }: ValkeyStore, timeoutMs: number): ValkeyClient {
  const address = parseValkeyUrl(url.reveal());
  if (address === undefined) throw new TypeError("limits.store was not checked");
  return new ValkeyClient({ address, authorities, timeoutMs });
}
