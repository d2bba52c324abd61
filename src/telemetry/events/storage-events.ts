import type { Clock } from "../../domain/clock.ts";
import type { Logger } from "../log/logger.ts";
import { logFault, logRecovery } from "../log/log-outage.ts";
import { Outage } from "../log/outage.ts";

export interface StorageEventOptions {
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Calls by the reason why they were not stored. */
export interface DroppedUsage {
  readonly ofErasedAccounts: number;
  readonly tooOld: number;
}

/** What happens between the gateway and its database, beside the ledger. */
export class StorageEvents {
  readonly #logger: Logger;
  readonly #keys: Outage;
  readonly #retention: Outage;
  readonly #lastUse: Outage;
  readonly #checkpoints: Outage;

  constructor({ logger, clock }: StorageEventOptions) {
    this.#logger = logger;
    this.#keys = new Outage(clock);
    this.#retention = new Outage(clock);
    this.#lastUse = new Outage(clock);
    this.#checkpoints = new Outage(clock);
  }

  /** Told once for each new cause. */
  databaseFailed(what: string, error: unknown): void {
    logFault(this.#logger, "the database does not work", { error, fields: { what } });
  }

  databaseRecovered(): void {
    this.#logger.log("info", "the database works again");
  }

  keysReloadFailed(error: unknown): void {
    const message = "keys cannot be read; known keys keep working, unknown ones get 503";
    if (this.#keys.failed()) logFault(this.#logger, message, { error });
  }

  keysReloaded(): void {
    logRecovery(this.#logger, this.#keys, "keys can be read again");
  }

  /** Calls that came when their account was erased, or others of their time removed. */
  usageDropped({ ofErasedAccounts, tooOld }: DroppedUsage): void {
    if (ofErasedAccounts + tooOld === 0) return;
    const message =
      "usage that came too late was not stored; what is too old was most likely before";
    this.#logger.log("warn", message, { ofErasedAccounts, tooOld });
  }

  lastUseStored(): void {
    logRecovery(this.#logger, this.#lastUse, "when keys were last used is stored again");
  }

  lastUseFailed(error: unknown): void {
    const message = "when keys were last used is not stored";
    if (this.#lastUse.failed()) logFault(this.#logger, message, { error });
  }

  retentionFailed(error: unknown): void {
    const message = "what is too old could not be removed";
    if (this.#retention.failed()) logFault(this.#logger, message, { error });
  }

  /** A run that met no failure. */
  retentionDone(): void {
    logRecovery(this.#logger, this.#retention, "what is too old can be removed again");
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
    this.#logger.log("info", "what was too old is removed", { rows });
  }
}
