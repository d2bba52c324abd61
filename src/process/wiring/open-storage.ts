import { hostname } from "node:os";
import { resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { alertEventOf } from "../../control/budgets/alert-event.ts";
import { viewCall } from "../../control/usage/call-row.ts";
import type { AdminServices } from "../../control/services.ts";
import type { Clock } from "../../domain/clock.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { RotatedFile } from "../../ledger/events/rotated-file.ts";
import { WebhookSender } from "../../ledger/events/webhook-sender.ts";
import { Ingest } from "../../ledger/ingest/ingest.ts";
import { spoolRoot } from "../../ledger/spool/process-folder.ts";
import { digestRenewal, LastUse } from "../../keys/last-use.ts";
import { AuditCheckpoints } from "../../store/audit-checkpoints.ts";
import { StorageUnavailable, UnusableDatabase } from "../../store/errors.ts";
import type { CostStore } from "../../store/costs.ts";
import type { BudgetAlert, DatabaseOwner, UsageStore } from "../../store/store.ts";
import { RetentionJob } from "../../store/retention-job.ts";
import { refuseFolder } from "../../store/sqlite/connection/open-database.ts";
import { openKeyFile } from "../../store/disk/key-file.ts";
import { type DatabaseStores, openDatabaseStores } from "./database-stores.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";

export interface StorageOptions {
  /** Paths are read once; a reload changes the rest. */
  readonly settings: () => Pick<
    Config,
    "storage" | "dataDir" | "auth" | "ledger" | "retention" | "idempotency" | "audit"
  >;
  readonly clock: Clock;
  readonly owner: DatabaseOwner & { readonly peppers: Peppers };
  readonly telemetry: Pick<Telemetry, "storage" | "ledger">;
}

export type Storage = ReturnType<typeof openStorage>;

/** What one process of a machine does for all. */
export type LeaderJobs = ReturnType<Storage["lead"]>;

const lastUseIntervalMs = 2_000;

/** The database is not opened yet. */
export function openStorage(options: StorageOptions) {
  const { clock, owner } = options;
  const { storage: events } = options.telemetry;
  const config = options.settings();
  const { storage } = config;
  let isOpen = false;
  const stores = openDatabaseStores(storage, clock, {
    owner,
    peppers: owner.peppers,
    onTrouble(what, error) {
      // An error that ends the start is reported once, by the caller.
      if (isOpen || !(error instanceof UnusableDatabase)) events.databaseFailed(what, error);
    },
    onRecovered: () => events.database.recovered(),
    onDropped: (dropped) => events.usageDropped(dropped),
  });
  const { connection, keys } = stores;
  const lastUse = new LastUse({ store: keys, intervalMs: lastUseIntervalMs, on: events.lastUse });
  const renewal = digestRenewal(keys);
  const keyFile = openKeyFile({
    config,
    clock,
    peppers: owner.peppers,
    store: keys,
    onFailed: (error) => events.keyFile.failed(error),
    onWritten: () => events.keyFile.recovered(),
  });
  const { file } = config.ledger.events;
  /** Only the leader writes it. */
  const eventFile = file && new RotatedFile(file, () => clock.now());
  return {
    ...stores,
    costs: eventFile === undefined ? stores.costs : costsWithFile(stores, eventFile),
    /** Those of the database, or those on disk while it is unavailable. */
    keys: keyFile ?? keys,
    /** Undefined if there is none. */
    keyFile,
    lastUse,
    renewal,
    /** Undefined while the database can be used, or may recover by itself. */
    whyNotReady(): string | undefined {
      const { needsRestore } = connection;
      return needsRestore && `the database ${needsRestore}: it has to be restored`;
    },
    /** Throws if the database can never be used; an unavailable one may recover. */
    async open(): Promise<void> {
      if (storage.backend === "sqlite") refuseFolder(storage.path);
      await connection.open().catch(throwUnlessUnavailable);
      isOpen = true;
      lastUse.start();
    },
    /** Call when this process leads its machine. Throws if a spool cannot be read. */
    lead: () => openJobs(options, stores, eventFile),
    /** Called after the last call has ended. */
    async close(): Promise<void> {
      await keyFile?.stop();
      await lastUse.stop();
      await renewal.stop();
      await connection.close();
    },
  };
}

function openJobs(
  options: StorageOptions,
  stores: DatabaseStores,
  eventFile: RotatedFile | undefined,
) {
  const { settings, clock, owner, telemetry } = options;
  const config = settings();
  const { ledger: on, storage } = telemetry;
  const { usage: store, storedCalls: calls, control } = stores;
  // The same after a restart, which goes on at once.
  const machine = `${hostname()}:${resolve(config.dataDir)}`;
  const { webhook } = config.ledger.events;
  const usage = eventFile === undefined ? store : withFile(stores, eventFile);
  const about = { calls, eventOf, alertEventOf, holder: machine, clock, on };
  const sender = webhook && new WebhookSender({ ...about, settings: webhook });
  const ingest = new Ingest({
    root: spoolRoot(config.dataDir),
    store: usage,
    settings: config.ledger,
    clock,
    on,
  });
  const retention = new RetentionJob({
    control: { prune: (...limits) => pruneAll(options, stores, limits) },
    usage: store,
    settings: config.retention,
    clock,
    isHeld: () => ingest.isReplaying,
    isOwn: () => stores.jobLocks.take("retention", machine, settings().retention.intervalMs),
    onFailed: (error) => storage.retention.failed(error),
    onDone: () => storage.retention.recovered(),
    onRemoved: (rows) => storage.retentionRemoved(rows),
  });
  const { checkpointIntervalMs: intervalMs, checkpointFile: path } = config.audit;
  const checkpoints = new AuditCheckpoints({
    store: control,
    peppers: owner.peppers,
    clock,
    intervalMs,
    path,
    isOwn: () => stores.jobLocks.take("checkpoints", machine, intervalMs),
    onCheckpoint: (checkpoint) => storage.auditCheckpoint(checkpoint),
    onBroken: (what) => storage.auditBroken(what),
    onFailed: (error) => storage.checkpoints.failed(error),
    onWritten: () => storage.checkpoints.recovered(),
  });
  return {
    /** Takes rows, and makes events of them. */
    usage,
    ingest,
    /** Starts them. They read all of the database. */
    start(): void {
      // Before rows are stored: the first delivery ever begins with the first of them.
      sender?.start();
      ingest.start();
      retention.start();
      checkpoints.start();
    },
    async stop(): Promise<void> {
      await retention.stop();
      await checkpoints.stop();
      await ingest.stop();
      await sender?.stop();
      await eventFile?.close();
    },
  };
}

/** Erases in the usage of that moment: that of the leader's jobs has files with events, too. */
export function erasing(usage: () => UsageStore): AdminServices["usage"] {
  return {
    erase: (...about) => usage().erase(...about),
    eraseEndUsers: (erased) => usage().eraseEndUsers(erased),
  };
}

/** Removes what is kept for a time beside the ledger; returns the number of rows. */
async function pruneAll(
  { settings, clock }: StorageOptions,
  { control, replies, responses }: DatabaseStores,
  [limits, limit]: Parameters<DatabaseStores["control"]["prune"]>,
): Promise<number> {
  const now = clock.now();
  const answers = await replies.prune(now - settings().idempotency.keepMs, limit);
  const stored = await responses.prune(now, limit);
  return answers + stored + (await control.prune(limits, limit));
}

function throwUnlessUnavailable(error: unknown): void {
  if (!(error instanceof StorageUnavailable) || error instanceof UnusableDatabase) throw error;
}

const operator = { accountId: undefined };
const eventOf = (call: UsageRecord): string => JSON.stringify(viewCall(call, operator));

function alertLineOf(alert: BudgetAlert): string {
  const { type, data } = alertEventOf(alert);
  return JSON.stringify({ type, ...data });
}

function costsWithFile({ costs }: Pick<DatabaseStores, "costs">, file: RotatedFile): CostStore {
  return {
    ...costs,
    async noteRun(run) {
      await costs.noteRun(run);
      // The summary is a JSON object.
      const line = `{"type":"usage.repriced",${run.summary.slice(1)}`;
      await file.append(() => Promise.resolve([line]));
    },
  };
}

/** Rows leave the spool once the file has them, too: a crash in between repeats events. */
function withFile(
  { usage: store, storedCalls }: Pick<DatabaseStores, "usage" | "storedCalls">,
  file: RotatedFile,
): UsageStore {
  return {
    async insert(records) {
      await store.insert(records);
      const alerts = await storedCalls.alertsOf(records.map(({ id }) => id));
      // Who is erased later is written over.
      const read = async (): Promise<readonly string[]> => {
        const stored = await storedCalls.withoutErased(records);
        return [...stored.map(eventOf), ...alerts.map(alertLineOf)];
      };
      await file.append(read).catch((cause: unknown) => {
        // No row is at fault, so all of them are tried again.
        throw new StorageUnavailable("the events of the ledger cannot be written", { cause });
      });
    },
    prune: (...about) => store.prune(...about),
    erase: (...about) => store.erase(...about),
    async eraseEndUsers(erased) {
      const calls = await store.eraseEndUsers(erased);
      const owner = `"account_id":${JSON.stringify(erased.accountId)}`;
      const names = erased.endUsers.map((name) => `"end_user":${JSON.stringify(name)}`);
      // No longer than any name; `null` may be.
      const parts = new Map(names.map((name) => [name, '"end_user":""']));
      await file.overwrite((line) => line.includes(owner), parts);
      return calls;
    },
  };
}
