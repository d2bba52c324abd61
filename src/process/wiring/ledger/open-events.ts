import { join } from "node:path";
import type { Config } from "../../../config/config.ts";
import { viewCall } from "../../../control/usage/call-row.ts";
import type { Clock } from "../../../domain/clock.ts";
import { EventOutbox } from "../../../ledger/events/event-outbox.ts";
import { RotatedFile } from "../../../ledger/events/rotated-file.ts";
import { StoredEvents } from "../../../ledger/events/stored-events.ts";
import { WebhookSender, type WebhookEvents } from "../../../ledger/events/webhook-sender.ts";
import type { UsageStore } from "../../../store/store.ts";

export interface LedgerEventOptions {
  readonly config: Pick<Config, "dataDir" | "ledger">;
  readonly store: UsageStore;
  readonly clock: Clock;
  readonly on: WebhookEvents;
}

/** The store of usage that also makes events, and the delivery of these. */
export interface LedgerEvents {
  readonly usage: UsageStore;
  start(): void;
  close(): Promise<void>;
}

const segmentBytes = 8 * 1_048_576;
const operator = { accountId: undefined };

export function openLedgerEvents({ config, store, clock, on }: LedgerEventOptions): LedgerEvents {
  const { webhook, file: fileSettings } = config.ledger.events;
  const file = fileSettings && new RotatedFile(fileSettings, () => clock.now());
  const folder = join(config.dataDir, "events");
  const outbox = webhook && new EventOutbox({ folder, segmentBytes });
  const sender = webhook && outbox && new WebhookSender({ outbox, settings: webhook, clock, on });
  const sinks = [file, outbox].filter((sink) => sink !== undefined);
  if (sinks.length === 0) {
    return { usage: store, start: () => undefined, close: () => Promise.resolve() };
  }
  const usage = new StoredEvents({
    store,
    sinks,
    eventOf: (record) => JSON.stringify(viewCall(record, operator)),
    onAppended: () => sender?.wake(),
  });
  return {
    usage,
    start: () => sender?.start(),
    async close() {
      await sender?.stop();
      await outbox?.close();
      await file?.close();
    },
  };
}
