import { describeError } from "../log/logger.ts";
import { Outage } from "../log/outage.ts";
import type { EventOptions } from "./events.ts";

/** What was found in the spool of a process that ended. */
export interface ReplayedSpool {
  readonly closed: number;
  readonly interrupted: number;
  readonly skippedBytes: number;
}

/** Events of usage on its way through the spool to the database. */
export class LedgerTelemetry {
  readonly #logger: EventOptions["logger"];
  readonly #metrics: EventOptions["metrics"];
  readonly #database: Outage;
  readonly #spool: Outage;
  readonly #spoolSpace: Outage;
  readonly #events: Outage;

  constructor(options: EventOptions) {
    this.#logger = options.logger;
    this.#metrics = options.metrics;
    this.#database = new Outage(options, {
      begins: "usage cannot be stored; it waits in the spool",
      ends: "usage is stored again",
    });
    this.#spool = new Outage(options, {
      begins: "the spool cannot be written; calls are refused until it can",
      ends: "the spool can be written again",
    });
    this.#spoolSpace = new Outage(options, {
      begins: "the spool is nearly full; once it is full, calls are refused",
      ends: "the spool has room again",
      level: "warn",
    });
    this.#events = new Outage(options, {
      begins: "events of the ledger cannot be delivered; they wait",
      ends: "events of the ledger are delivered again",
    });
  }

  writeFailed(rows: number, error: unknown): void {
    this.#metrics.counters.add("sluice_ledger_write_failures_total", []);
    this.#database.failed(error, { rows });
  }

  written(): void {
    this.#database.recovered();
  }

  spoolFailed(error: unknown): void {
    this.#spool.failed(error);
  }

  spoolRecovered(): void {
    this.#spool.recovered();
  }

  nearlyFull(bytes: number, limit: number): void {
    this.#spoolSpace.failed(undefined, { bytes, limit });
  }

  hasRoomAgain(): void {
    this.#spoolSpace.recovered();
  }

  replayed({ closed, interrupted, skippedBytes }: ReplayedSpool): void {
    if (closed + interrupted + skippedBytes === 0) return;
    const level = skippedBytes > 0 ? "error" : interrupted > 0 ? "warn" : "info";
    const fields = { closed, interrupted, skippedBytes };
    this.#logger.log(level, "the spool of a process that ended was stored", fields);
  }

  /** Usage that the file may hold is replayed at a later start that can read it. */
  fileSkipped(path: string, reason: string): void {
    const message = "a file in the spool folder cannot be read and is skipped";
    this.#logger.log("error", message, { path, reason });
  }

  /** A file of a running process was damaged when it was read. */
  damaged(path: string, skippedBytes: number): void {
    this.#logger.log("error", "a spool file is damaged; it is kept", {
      path,
      skippedBytes,
    });
  }

  /** At shutdown: neither the database nor the spool took these rows. */
  lost(rows: number, error: unknown): void {
    const message = "usage is lost: neither the database nor the spool accepts it";
    this.#logger.log("error", message, { rows, cause: describeError(error) });
  }

  /** The receiver of events has them. */
  eventsSent(events: number): void {
    this.#metrics.counters.add("sluice_ledger_events_sent_total", [], events);
    this.#events.recovered();
  }

  eventsFailed(error: unknown): void {
    this.#metrics.counters.add("sluice_ledger_event_failures_total", []);
    this.#events.failed(error);
  }

  /** The database rejects the row permanently; it is in the dead-letter file. */
  deadLettered(callId: string, error: unknown): void {
    this.#metrics.counters.add("sluice_ledger_dead_letters_total", []);
    const message = "a usage row was put into the dead-letter file";
    this.#logger.log("error", message, { id: callId, cause: describeError(error) });
  }
}
