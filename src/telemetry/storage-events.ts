import type { Clock } from "../domain/clock.ts";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import { Outage } from "./outage.ts";
import { describeError } from "./redact.ts";

export interface StorageEventOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** What a start found in the spool of the process before. */
export interface ReplayedSpool {
  readonly closed: number;
  readonly interrupted: number;
  readonly skippedBytes: number;
}

/** What happens between the gateway and its disk: database, spool, keys, retention. */
export class StorageEvents {
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #keys: Outage;
  readonly #ledger: Outage;
  readonly #spool: Outage;
  readonly #spoolSpace: Outage;
  readonly #retention: Outage;
  readonly #lastUse: Outage;

  constructor({ logger, metrics, clock }: StorageEventOptions) {
    this.#logger = logger;
    this.#metrics = metrics;
    this.#keys = new Outage(clock);
    this.#ledger = new Outage(clock);
    this.#spool = new Outage(clock);
    this.#spoolSpace = new Outage(clock);
    this.#retention = new Outage(clock);
    this.#lastUse = new Outage(clock);
  }

  keysReloadFailed(error: unknown): void {
    const message = "keys cannot be read; known keys keep working, unknown ones get 503";
    if (this.#keys.failed()) this.#fault(message, error);
  }

  keysReloaded(): void {
    this.#recovered(this.#keys, "keys can be read again");
  }

  ledgerWriteFailed(rows: number, error: unknown): void {
    this.#metrics.ledgerWriteFailed();
    const message = "usage cannot be stored; it waits in the spool";
    if (this.#ledger.failed()) this.#fault(message, error, { rows });
  }

  ledgerWritten(): void {
    this.#recovered(this.#ledger, "usage is stored again");
  }

  spoolFailed(error: unknown): void {
    const message = "the spool cannot be written; calls are refused until it can";
    if (this.#spool.failed()) this.#fault(message, error);
  }

  spoolRecovered(): void {
    this.#recovered(this.#spool, "the spool can be written again");
  }

  spoolNearlyFull(bytes: number, limit: number): void {
    if (!this.#spoolSpace.failed()) return;
    const message = "the spool is nearly full; calls are refused when it is";
    this.#logger.log("warn", message, { bytes, limit });
  }

  spoolReplayed({ closed, interrupted, skippedBytes }: ReplayedSpool): void {
    if (closed + interrupted + skippedBytes === 0) return;
    const level = skippedBytes > 0 ? "error" : interrupted > 0 ? "warn" : "info";
    const fields = { closed, interrupted, skippedBytes };
    this.#logger.log(level, "the spool of the process before was replayed", fields);
  }

  /** A row that the database will never take; it is in the dead-letter file. */
  deadLettered(callId: string, error: unknown): void {
    this.#metrics.deadLettered();
    this.#fault("a usage row was put into the dead-letter file", error, { id: callId });
  }

  lastUseFailed(error: unknown): void {
    if (this.#lastUse.failed()) this.#fault("when keys were last used is not stored", error);
  }

  retentionFailed(error: unknown): void {
    if (this.#retention.failed()) this.#fault("what is too old could not be removed", error);
  }

  retentionDone(rows: number): void {
    this.#retention.recovered();
    if (rows > 0) this.#logger.log("info", "what was too old is removed", { rows });
  }

  #fault(message: string, error: unknown, fields: Readonly<Record<string, string | number>> = {}) {
    this.#logger.log("error", message, { ...fields, cause: describeError(error) });
  }

  #recovered(outage: Outage, message: string): void {
    const lastedMs = outage.recovered();
    if (lastedMs === undefined) return;
    this.#logger.log("info", message, { afterMs: Math.round(lastedMs) });
  }
}
