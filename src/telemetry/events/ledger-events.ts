import { describeError } from "../log/logger.ts";
import { Outage } from "../log/outage.ts";
import type { EventOptions } from "./events.ts";

/** What was found in the spool of a process that ended. */
interface ReplayedSpool {
  readonly closed: number;
  readonly interrupted: number;
  readonly skippedBytes: number;
}

/** Events of usage on its way through the spool to the database. */
export function ledgerEvents(options: EventOptions) {
  const { logger, metrics } = options;
  const { counters } = metrics;
  const { database, spool, spoolSpace, events } = ledgerOutages(options);
  return {
    writeFailed(error: unknown): void {
      counters.of("sluice_ledger_write_failures_total").value += 1;
      database.failed(error);
    },
    written: () => database.recovered(),

    spoolFailed: (error: unknown) => spool.failed(error),
    spoolRecovered: () => spool.recovered(),
    nearlyFull: (bytes: number, limit: number) => spoolSpace.failed(undefined, { bytes, limit }),
    hasRoomAgain: () => spoolSpace.recovered(),

    replayed({ closed, interrupted, skippedBytes }: ReplayedSpool): void {
      if (closed + interrupted + skippedBytes === 0) return;
      const level = skippedBytes > 0 ? "error" : interrupted > 0 ? "warn" : "info";
      const fields = { closed, interrupted, skippedBytes };
      logger.log(level, "the spool of a process that ended was stored", fields);
    },

    /** Usage that the file may hold is replayed at a later start that can read it. */
    fileSkipped(path: string, reason: string): void {
      const message = "a file in the spool folder cannot be read and is skipped";
      logger.log("error", message, { path, reason });
    },

    /** A file of a running process was damaged when it was read. */
    damaged(path: string, skippedBytes: number): void {
      logger.log("error", "a spool file is damaged; it is kept", { path, skippedBytes });
    },

    /** At shutdown: neither the database nor the spool took these rows. */
    lost(rows: number, error: unknown): void {
      const message = "usage is lost: neither the database nor the spool accepts it";
      logger.log("error", message, { rows, cause: describeError(error) });
    },

    /** The receiver of events has them. */
    eventsSent(sent: number): void {
      counters.of("sluice_ledger_events_sent_total").value += sent;
      events.recovered();
    },

    eventsFailed(error: unknown): void {
      counters.of("sluice_ledger_event_failures_total").value += 1;
      events.failed(error);
    },

    /** The database rejects the row permanently; it is in the dead-letter file. */
    deadLettered(callId: string, error: unknown): void {
      counters.of("sluice_ledger_dead_letters_total").value += 1;
      const message = "a usage row was put into the dead-letter file";
      logger.log("error", message, { id: callId, cause: describeError(error) });
    },
  };
}

function ledgerOutages(options: EventOptions) {
  return {
    database: new Outage(options, {
      begins: "usage cannot be stored; it waits in the spool",
      ends: "usage is stored again",
    }),
    spool: new Outage(options, {
      begins: "the spool cannot be written; calls are refused until it can",
      ends: "the spool can be written again",
    }),
    spoolSpace: new Outage(options, {
      begins: "the spool is nearly full; once it is full, calls are refused",
      ends: "the spool has room again",
      level: "warn",
    }),
    events: new Outage(options, {
      begins: "events of the ledger cannot be delivered; they wait",
      ends: "events of the ledger are delivered again",
    }),
  };
}
