import { describeError, type Logger } from "../log/logger.ts";
import { logFault, logRecovery, Outage } from "../log/outage.ts";
import type { EventOptions } from "./event-options.ts";

/** Calls that were not stored, by reason. */
export interface DroppedUsage {
  readonly ofErasedAccounts: number;
  readonly tooOld: number;
}

/** Events between the gateway and its database, except those of the ledger. */
export class StorageEvents {
  readonly #logger: Logger;
  readonly #database: Outage;
  readonly #alone: Outage;
  readonly #differences: Outage;
  readonly #keys: Outage;
  readonly #keyFile: Outage;
  readonly #messages: Outage;
  readonly #limits: Outage;
  readonly #keptLimits: Outage;
  readonly #retention: Outage;
  readonly #lastUse: Outage;
  readonly #checkpoints: Outage;

  constructor({ logger, clock }: Pick<EventOptions, "logger" | "clock">) {
    this.#logger = logger;
    this.#database = new Outage(clock);
    this.#alone = new Outage(clock);
    this.#differences = new Outage(clock);
    this.#keys = new Outage(clock);
    this.#keyFile = new Outage(clock);
    this.#messages = new Outage(clock);
    this.#limits = new Outage(clock);
    this.#keptLimits = new Outage(clock);
    this.#retention = new Outage(clock);
    this.#lastUse = new Outage(clock);
    this.#checkpoints = new Outage(clock);
  }

  /** Called once per new cause. */
  databaseFailed(what: string, error: unknown): void {
    this.#database.failed();
    logFault(this.#logger, "the database is unavailable", { error, fields: { what } });
  }

  databaseRecovered(): void {
    logRecovery(this.#logger, this.#database, "the database is available again");
  }

  /** This process grants its share of the limits. Called once per new reason. */
  limitsAlone(store: string, reason: string): void {
    this.#alone.failed();
    const message = "the store of limits does not decide; this process grants its share";
    this.#logger.log("error", message, { store, reason });
  }

  /** What the store had counted for an account is lost, or unreadable: a share for a minute. */
  limitsLost(store: string, account: string, reason: string): void {
    const message = "the store of limits has lost an account; this process grants its share of it";
    this.#logger.log("error", message, { store, account, reason });
  }

  /** At the start of a process, and at the end of each loss. */
  limitsShared(store: string): void {
    const lastedMs = this.#alone.recovered();
    const after = lastedMs === undefined ? {} : { afterMs: Math.round(lastedMs) };
    this.#logger.log("info", "the store of limits decides", { store, ...after });
  }

  /** A decision failed for a reason other than the store's availability. */
  limitsFailed(store: string, error: unknown): void {
    const message = "the store of limits failed; this process has granted its share";
    if (this.#limits.failed()) logFault(this.#logger, message, { error, fields: { store } });
  }

  /** Limits in memory could not be written, read or handed over. */
  limitsNotKept(error: unknown): void {
    const message =
      "limits cannot be kept for the next process, which may grant some of them again";
    if (this.#keptLimits.failed()) logFault(this.#logger, message, { error });
  }

  keysReloadFailed(error: unknown): void {
    const message = "keys cannot be read; known keys keep working, unknown ones get 503";
    if (this.#keys.failed()) logFault(this.#logger, message, { error });
  }

  keysReloaded(): void {
    logRecovery(this.#logger, this.#keys, "keys can be read again");
  }

  keyFileFailed(error: unknown): void {
    const message = "the keys cannot be written to disk for a start without the database";
    if (this.#keyFile.failed()) logFault(this.#logger, message, { error });
  }

  keyFileWritten(): void {
    logRecovery(this.#logger, this.#keyFile, "the keys can be written to disk again");
  }

  keyMessagesLost(error: unknown): void {
    const message = "changes of keys are not announced; each gateway looks for them every second";
    if (!this.#messages.failed()) return;
    this.#logger.log("warn", message, { cause: describeError(error) });
  }

  keyMessagesBack(): void {
    logRecovery(this.#logger, this.#messages, "changes of keys are announced again");
  }

  /** Gateways on the database that must have something in common have not. */
  processesDiffer(what: string): void {
    this.#differences.failed();
    this.#logger.log("error", "the gateways on this database are not configured alike", { what });
  }

  processesSame(): void {
    logRecovery(
      this.#logger,
      this.#differences,
      "the gateways on this database are configured alike again",
    );
  }

  /** Calls that arrived after their account was erased, or after rows of their age were removed. */
  usageDropped({ ofErasedAccounts, tooOld }: DroppedUsage): void {
    if (ofErasedAccounts + tooOld === 0) return;
    const message = "usage arrived too late and was not stored";
    this.#logger.log("warn", message, { ofErasedAccounts, tooOld });
  }

  lastUseStored(): void {
    logRecovery(this.#logger, this.#lastUse, "the last use of keys is stored again");
  }

  lastUseFailed(error: unknown): void {
    const message = "the last use of keys cannot be stored";
    if (this.#lastUse.failed()) logFault(this.#logger, message, { error });
  }

  retentionFailed(error: unknown): void {
    const message = "expired data could not be removed";
    if (this.#retention.failed()) logFault(this.#logger, message, { error });
  }

  /** A retention run without failures. */
  retentionDone(): void {
    logRecovery(this.#logger, this.#retention, "expired data can be removed again");
  }

  /** One line of JSON, as `audit verify --checkpoints` reads it. */
  auditCheckpoint(checkpoint: string): void {
    this.#logger.log("info", "audit checkpoint", { checkpoint });
  }

  auditBroken(what: string): void {
    const message = "the audit is broken; see `sluice audit verify`";
    this.#logger.log("error", message, { what });
  }

  auditCheckpointFailed(error: unknown): void {
    const message = "a checkpoint of the audit could not be written";
    if (this.#checkpoints.failed()) logFault(this.#logger, message, { error });
  }

  auditCheckpointWritten(): void {
    logRecovery(this.#logger, this.#checkpoints, "checkpoints of the audit can be written again");
  }

  retentionRemoved(rows: number): void {
    this.#logger.log("info", "expired data was removed", { rows });
  }
}
