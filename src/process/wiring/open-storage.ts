import { hostname } from "node:os";
import { resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import { Ingest } from "../../ledger/ingest/ingest.ts";
import { DigestRenewal, LastUse } from "../../keys/last-use.ts";
import {
  type AuditCheckpointOptions,
  AuditCheckpoints,
  openCheckpointFile,
} from "../../store/audit-checkpoints.ts";
import type { ControlStore } from "../../store/control-store.ts";
import { StorageUnavailable, UnusableDatabase } from "../../store/errors.ts";
import type { DatabaseOwner, KeyStore, ReplyStore, UsageStore } from "../../store/store.ts";
import { RetentionJob, type RetentionOptions } from "../../store/retention-job.ts";
import type { ProcessStore } from "../../store/repositories/process-store.ts";
import { refuseOddFiles } from "../../store/sqlite/connection/open-database.ts";
import { type KeyFile, openKeyFile } from "../../store/disk/key-file.ts";
import type { UsageReports } from "../../store/usage-reports.ts";
import { type DatabaseStores, openDatabaseStores } from "./database-stores.ts";
import { openLedgerEvents } from "./ledger/open-events.ts";
import { spoolRoot } from "./ledger/open-spool.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";

export interface StorageOptions {
  /** Paths are read once; a reload changes the rest. */
  readonly settings: () => Pick<
    Config,
    "storage" | "dataDir" | "auth" | "ledger" | "retention" | "idempotency" | "audit"
  >;
  readonly clock: Clock;
  /** The expected owner of the database. */
  readonly owner: DatabaseOwner & { readonly peppers: Peppers };
  readonly telemetry: Pick<Telemetry, "storage" | "ledger">;
  /** Rows of this process that are not stored yet, for the log. */
  readonly countWaiting: () => number;
}

/** What one process of a machine does for all. */
export interface LeaderJobs {
  /** Takes rows, and makes events of them. */
  readonly usage: UsageStore;
  /** Stores the contents of the spools. */
  readonly ingest: Ingest;
  /** Starts them. They read all of the database. */
  start(): void;
  stop(): Promise<void>;
}

/** The database of a process. */
export interface Storage {
  readonly control: ControlStore;
  readonly usage: UsageStore;
  readonly reports: UsageReports;
  /** Stored answers for idempotent requests. */
  readonly replies: ReplyStore;
  /** Those of the database, or those on disk while it is unavailable. */
  readonly keys: Pick<KeyStore, "loadKeys">;
  /** Undefined if there is none. */
  readonly keyFile: KeyFile | undefined;
  readonly processes: ProcessStore;
  readonly lastUse: LastUse;
  readonly renewal: DigestRenewal;
  /** Undefined while the database can be used, or may recover by itself. */
  whyNotReady(): string | undefined;
  /** Throws if the database can never be used; an unavailable one may recover. */
  open(): Promise<void>;
  /** The keys have been read: what reads all of the database may begin. */
  start(): void;
  /** Call when this process leads its machine. Throws if a spool cannot be read. */
  lead(): LeaderJobs;
  /** Called after the last call has ended. */
  close(): Promise<void>;
}

const lastUseIntervalMs = 2_000;

/** The database is not opened yet. */
export function openStorage(options: StorageOptions): Storage {
  const { settings, telemetry } = options;
  const config = settings();
  const { storage: events } = telemetry;
  let isOpen = false;
  const stores = openStores(options, () => isOpen);
  const { connection, control, keys, reports, replies } = stores;
  const { usage } = stores;
  const lastUse = new LastUse({
    store: keys,
    intervalMs: lastUseIntervalMs,
    onStored: () => events.lastUse.recovered(),
    onFailed: (error) => events.lastUse.failed(error),
  });
  const renewal = new DigestRenewal(keys);
  const known = keysWithFile(options, keys);
  return {
    control,
    usage,
    reports,
    replies,
    keys: known.keys,
    keyFile: known.file,
    processes: stores.processes,
    lastUse,
    renewal,
    whyNotReady() {
      const { needsRestore } = connection;
      return needsRestore && `the database ${needsRestore}: it has to be restored`;
    },
    async open() {
      if (config.storage.backend === "sqlite") refuseOddFiles(config.storage.path);
      await connection.open().catch(throwUnlessUnavailable);
      isOpen = true;
    },
    start() {
      lastUse.start();
    },
    lead: () => openJobs(options, stores),
    async close() {
      await known.file?.stop();
      await lastUse.stop();
      await renewal.stop();
      await connection.close();
    },
  };
}

function openJobs(options: StorageOptions, stores: DatabaseStores): LeaderJobs {
  const { settings, clock, telemetry, countWaiting } = options;
  const config = settings();
  const { ledger: on } = telemetry;
  const { usage: store, storedCalls: calls } = stores;
  const events = openLedgerEvents({ config, store, calls, clock, on });
  const ingest = new Ingest({
    root: spoolRoot(config.dataDir),
    store: events.usage,
    settings: config.ledger,
    clock,
    on,
    countWaiting,
  });
  // The same after a restart, which goes on at once.
  const machine = `${hostname()}:${resolve(config.dataDir)}`;
  const own = (job: string, intervalMs: () => number) => () =>
    stores.jobLocks.take(job, machine, intervalMs());
  const retention = createRetention(options, stores, {
    isHeld: () => ingest.isReplaying,
    isOwn: own("retention", () => settings().retention.intervalMs),
  });
  const checkpoints = createCheckpoints(options, stores.control, {
    isOwn: own("checkpoints", () => config.audit.checkpointIntervalMs),
  });
  return {
    usage: events.usage,
    ingest,
    start() {
      events.start();
      ingest.start();
      retention.start();
      checkpoints.start();
    },
    async stop() {
      await retention.stop();
      await checkpoints.stop();
      await ingest.stop();
      await events.close();
    },
  };
}

function keysWithFile(
  { settings, clock, owner: { peppers }, telemetry: { storage: events } }: StorageOptions,
  store: KeyStore,
): ReturnType<typeof openKeyFile> {
  return openKeyFile({
    config: settings(),
    clock,
    peppers,
    store,
    onFailed: (error) => events.keyFile.failed(error),
    onWritten: () => events.keyFile.recovered(),
  });
}

function createRetention(
  { settings, clock, telemetry: { storage: events } }: StorageOptions,
  stores: DatabaseStores,
  turns: Pick<RetentionOptions, "isHeld" | "isOwn">,
): RetentionJob {
  return new RetentionJob({
    control: withReplies(stores, () => clock.now() - settings().idempotency.keepMs),
    usage: stores.usage,
    settings: settings().retention,
    clock,
    ...turns,
    onFailed: (error) => events.retention.failed(error),
    onDone: () => events.retention.recovered(),
    onRemoved: (rows) => events.retentionRemoved(rows),
  });
}

function createCheckpoints(
  { settings, clock, owner, telemetry }: StorageOptions,
  store: ControlStore,
  turns: Pick<AuditCheckpointOptions, "isOwn">,
): AuditCheckpoints {
  const { checkpointIntervalMs: intervalMs, checkpointFile: path } = settings().audit;
  const { storage: events } = telemetry;
  return new AuditCheckpoints({
    ...turns,
    store,
    peppers: owner.peppers,
    clock,
    intervalMs,
    file: path === undefined ? undefined : openCheckpointFile(path),
    onCheckpoint: (checkpoint) => events.auditCheckpoint(checkpoint),
    onBroken: (what) => events.auditBroken(what),
    onFailed: (error) => events.checkpoints.failed(error),
    onWritten: () => events.checkpoints.recovered(),
  });
}

function openStores(
  { settings, clock, owner, telemetry }: StorageOptions,
  isOpen: () => boolean,
): DatabaseStores {
  const { storage: events } = telemetry;
  return openDatabaseStores(settings().storage, clock, {
    owner,
    onTrouble(what, error) {
      // An error that ends the start is reported once, by the caller.
      if (isOpen() || !(error instanceof UnusableDatabase)) events.databaseFailed(what, error);
    },
    onRecovered: () => events.database.recovered(),
    onDropped: (dropped) => events.usageDropped(dropped),
  });
}

/** Prunes stored answers of before `before()` together with other expired data. */
function withReplies(
  { control, replies }: Pick<Storage, "control" | "replies">,
  before: () => number,
): Pick<ControlStore, "prune"> {
  return {
    async prune(limits, limit) {
      return (await control.prune(limits, limit)) + (await replies.prune(before(), limit));
    },
  };
}

function throwUnlessUnavailable(error: unknown): void {
  if (!(error instanceof StorageUnavailable) || error instanceof UnusableDatabase) throw error;
}
