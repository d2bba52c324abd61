import { describeError, type Logger } from "../log/logger.ts";
import { Outage, type OutageOptions } from "../log/outage.ts";

/** Calls that were not stored, by reason. */
export interface DroppedUsage {
  readonly ofErasedAccounts: number;
  readonly tooOld: number;
}

/** Events between the gateway and its database, except those of the ledger. */
export class StorageEvents {
  /** Told once per new cause. */
  readonly database: Outage;
  /** The store of limits does not decide. Told once per new reason. */
  readonly shares: Outage;
  /** A decision failed for a reason other than the store's availability. */
  readonly decisions: Outage;
  /** Limits in memory could not be written, read or handed over. */
  readonly keptLimits: Outage;
  readonly keys: Outage;
  readonly keyFile: Outage;
  readonly keyMessages: Outage;
  /** Gateways on the database that must have something in common have not. */
  readonly differences: Outage;
  readonly lastUse: Outage;
  /** Over after a retention run without failures. */
  readonly retention: Outage;
  readonly checkpoints: Outage;
  readonly #logger: Logger;

  constructor(options: OutageOptions) {
    this.#logger = options.logger;
    const outage = (begins: string, ends?: string): Outage => new Outage(options, { begins, ends });
    this.database = outage("the database is unavailable", "the database is available again");
    this.shares = outage(
      "the store of limits does not decide; this process grants its share",
      "the store of limits decides",
    );
    this.decisions = outage("the store of limits failed; this process has granted its share");
    this.keptLimits = outage(
      "limits cannot be kept for the next process, which may grant some of them again",
    );
    this.keys = outage(
      "keys cannot be read; known keys keep working, unknown ones get 503",
      "keys can be read again",
    );
    this.keyFile = outage(
      "the keys cannot be written to disk for a start without the database",
      "the keys can be written to disk again",
    );
    this.keyMessages = new Outage(options, {
      begins: "changes of keys are not announced; each gateway looks for them every second",
      ends: "changes of keys are announced again",
      level: "warn",
    });
    this.differences = outage(
      "the gateways on this database are not configured alike",
      "the gateways on this database are configured alike again",
    );
    this.lastUse = outage(
      "the last use of keys cannot be stored",
      "the last use of keys is stored again",
    );
    this.retention = outage(
      "expired data could not be removed",
      "expired data can be removed again",
    );
    this.checkpoints = outage(
      "a checkpoint of the audit could not be written",
      "checkpoints of the audit can be written again",
    );
  }

  databaseFailed(what: string, error: unknown): void {
    this.database.failedAnew({ what, cause: describeError(error) });
  }

  /** What the store had counted for an account is lost, or unreadable: a share for a minute. */
  limitsLost(store: string, account: string, reason: string): void {
    const message = "the store of limits has lost an account; this process grants its share of it";
    this.#logger.log("error", message, { store, account, reason });
  }

  /** Calls that arrived after their account was erased, or after rows of their age were removed. */
  usageDropped({ ofErasedAccounts, tooOld }: DroppedUsage): void {
    if (ofErasedAccounts + tooOld === 0) return;
    const message = "usage arrived too late and was not stored";
    this.#logger.log("warn", message, { ofErasedAccounts, tooOld });
  }

  /** One line of JSON, as `audit verify --checkpoints` reads it. */
  auditCheckpoint(checkpoint: string): void {
    this.#logger.log("info", "audit checkpoint", { checkpoint });
  }

  auditBroken(what: string): void {
    const message = "the audit is broken; see `sluice audit verify`";
    this.#logger.log("error", message, { what });
  }

  retentionRemoved(rows: number): void {
    this.#logger.log("info", "expired data was removed", { rows });
  }
}
