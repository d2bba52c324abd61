import type { PriceTable } from "../../domain/money/price.ts";
import { describeError } from "../log/logger.ts";
import { Outage, type OutageOptions } from "../log/outage.ts";

/** Calls that were not stored, by reason. */
interface DroppedUsage {
  readonly ofErasedAccounts: number;
  readonly tooOld: number;
}

export type StorageEvents = ReturnType<typeof storageEvents>;

/** Events between the gateway and its database, except those of the ledger. */
export function storageEvents(options: OutageOptions) {
  const { logger } = options;
  const outages = storageOutages(options);
  return {
    ...outages,

    databaseFailed(what: string, error: unknown): void {
      outages.database.failedAnew({ what, cause: describeError(error) });
    },

    /** At the first sight of a server, as of a new installation: nothing is to be done. */
    limitsNew(store: string, reason: string): void {
      const message =
        "the store of limits decides in a minute; until then, this process grants its share";
      logger.log("info", message, { store, reason });
    },

    /** What the store had counted for an account is lost, or unreadable: a share for a minute. */
    limitsLost(store: string, account: string, reason: string): void {
      const message =
        "the store of limits has lost an account; this process grants its share of it";
      logger.log("error", message, { store, account, reason });
    },

    /** Calls that arrived after their account was erased, or after rows of their age were removed. */
    usageDropped({ ofErasedAccounts, tooOld }: DroppedUsage): void {
      if (ofErasedAccounts + tooOld === 0) return;
      const message = "usage arrived too late and was not stored";
      logger.log("warn", message, { ofErasedAccounts, tooOld });
    },

    pricesPublished({ version, validFrom }: Pick<PriceTable, "version" | "validFrom">): void {
      const from = new Date(validFrom).toISOString();
      logger.log("info", "prices were published", { version, validFrom: from });
    },

    /** One line of JSON, as `audit verify --checkpoints` reads it. */
    auditCheckpoint(checkpoint: string): void {
      logger.log("info", "audit checkpoint", { checkpoint });
    },

    auditBroken(what: string): void {
      logger.log("error", "the audit is broken; see `sluice audit verify`", { what });
    },

    retentionRemoved(rows: number): void {
      logger.log("info", "expired data was removed", { rows });
    },
  };
}

function storageOutages(options: OutageOptions) {
  const outage = (begins: string, ends?: string): Outage => new Outage(options, { begins, ends });
  return {
    /** Told once per new cause. */
    database: outage("the database is unavailable", "the database is available again"),
    /** The store of limits does not decide. Told once per new reason. */
    shares: outage(
      "the store of limits does not decide; this process grants its share",
      "the store of limits decides",
    ),
    /** A decision failed for a reason other than the store's availability. */
    decisions: outage("the store of limits failed; this process has granted its share"),
    /** Limits in memory could not be written, read or handed over. */
    keptLimits: outage(
      "limits cannot be kept for the next process, which may grant some of them again",
    ),
    keys: outage(
      "keys cannot be read; known keys keep working, unknown ones get 503",
      "keys can be read again",
    ),
    prices: outage(
      "prices cannot be read or published; calls have those that this process knows",
      "prices can be read again",
    ),
    keyFile: outage(
      "the keys cannot be written to disk for a start without the database",
      "the keys can be written to disk again",
    ),
    keyMessages: new Outage(options, {
      begins: "changes of keys are not announced; each gateway looks for them every second",
      ends: "changes of keys are announced again",
      level: "warn",
    }),
    /** Gateways on the database that must have something in common have not. */
    differences: outage(
      "the gateways on this database are not configured alike",
      "the gateways on this database are configured alike again",
    ),
    lastUse: outage(
      "the last use of keys cannot be stored",
      "the last use of keys is stored again",
    ),
    /** Over after a retention run without failures. */
    retention: outage("expired data could not be removed", "expired data can be removed again"),
    checkpoints: outage(
      "a checkpoint of the audit could not be written",
      "checkpoints of the audit can be written again",
    ),
  };
}
