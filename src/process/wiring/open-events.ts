import type { Config } from "../../config/config.ts";
import { viewCall } from "../../control/usage/call-row.ts";
import type { Clock } from "../../domain/clock.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { RotatedFile } from "../../ledger/events/rotated-file.ts";
import { WebhookSender, type WebhookEvents } from "../../ledger/events/webhook-sender.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import type { StoredCalls, UsageStore } from "../../store/store.ts";

export interface LedgerEventOptions {
  readonly config: Pick<Config, "ledger">;
  readonly store: UsageStore;
  readonly calls: StoredCalls;
  /** Who delivers: the same after a restart, which goes on at once. */
  readonly holder: string;
  readonly clock: Clock;
  readonly on: WebhookEvents;
}

const operator = { accountId: undefined };
const eventOf = (call: UsageRecord): string => JSON.stringify(viewCall(call, operator));

/** The store of usage that also makes events, and the delivery of these. */
export function openLedgerEvents(options: LedgerEventOptions) {
  const { config, store, calls, holder, clock, on } = options;
  const { webhook: settings, file: fileSettings } = config.ledger.events;
  const file = fileSettings && new RotatedFile(fileSettings, () => clock.now());
  const sender = settings && new WebhookSender({ calls, eventOf, holder, settings, clock, on });
  return {
    usage: file === undefined ? store : withFile(store, file),
    /** Called before rows are stored: the first delivery ever begins with the first of them. */
    start: () => sender?.start(),
    async close(): Promise<void> {
      await sender?.stop();
      await file?.close();
    },
  };
}

/** Rows leave the spool once the file has them, too: a crash in between repeats events. */
function withFile(store: UsageStore, file: RotatedFile): UsageStore {
  return {
    async insert(records) {
      await store.insert(records);
      await file.append(records.map(eventOf)).catch((cause: unknown) => {
        // No row is at fault, so all of them are tried again.
        throw new StorageUnavailable("the events of the ledger cannot be written", { cause });
      });
    },
    prune: (...about) => store.prune(...about),
    erase: (...about) => store.erase(...about),
  };
}
