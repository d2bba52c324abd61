import { logFault, logRecovery, Outage } from "../log/outage.ts";
import type { EventOptions } from "./event-options.ts";

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

  constructor({ logger, metrics, clock }: EventOptions) {
    this.#logger = logger;
    this.#metrics = metrics;
    this.#database = new Outage(clock);
    this.#spool = new Outage(clock);
    this.#spoolSpace = new Outage(clock);
    this.#events = new Outage(clock);
  }

  writeFailed(rows: number, error: unknown): void {
    this.#metrics.counters.add("sluice_ledger_write_failures_total", []);
    const message = "usage cannot be stored; it waits in the spool";
    if (this.#database.failed()) logFault(this.#logger, message, { error, fields: { rows } });
  }

  written(): void {
    logRecovery(this.#logger, this.#database, "usage is stored again");
  }

  spoolFailed(error: unknown): void {
    const message = "the spool cannot be written; calls are refused until it can";
    if (this.#spool.failed()) logFault(this.#logger, message, { error });
  }

  spoolRecovered(): void {
    logRecovery(this.#logger, this.#spool, "the spool can be written again");
  }

  nearlyFull(bytes: number, limit: number): void {
    if (!this.#spoolSpace.failed()) return;
    const message = "the spool is nearly full; once it is full, calls are refused";
    this.#logger.log("warn", message, { bytes, limit });
  }

  hasRoomAgain(): void {
    logRecovery(this.#logger, this.#spoolSpace, "the spool has room again");
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

  /** At shutdown: the spool did not take these rows. */
  lost(rows: number, error: unknown): void {
    const message = "usage is lost: the spool cannot be written";
    logFault(this.#logger, message, { error, fields: { rows } });
  }

  /** The receiver of events has them. */
  eventsSent(events: number): void {
    this.#metrics.counters.add("sluice_ledger_events_sent_total", [], events);
    logRecovery(this.#logger, this.#events, "events of the ledger are delivered again");
  }

  eventsFailed(error: unknown): void {
    this.#metrics.counters.add("sluice_ledger_event_failures_total", []);
    const message = "events of the ledger cannot be delivered; they wait";
    if (this.#events.failed()) logFault(this.#logger, message, { error });
  }

  /** The database rejects the row permanently; it is in the dead-letter file. */
  deadLettered(callId: string, error: unknown): void {
    this.#metrics.counters.add("sluice_ledger_dead_letters_total", []);
    const message = "a usage row was put into the dead-letter file";
    logFault(this.#logger, message, { error, fields: { id: callId } });
  }
}
