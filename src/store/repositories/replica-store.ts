import { sql, type RawBuilder } from "kysely";
import type { Replica, ReplicaFacts } from "../../domain/replica.ts";
import type { ReplicaStore, ReplicasSeen, ReplicaWatch, ReplicaWatcher } from "../replicas.ts";
import { currentEpoch } from "./control/key-epochs.ts";
import { present } from "./row.ts";
import type { Queries } from "./tables.ts";

export interface ReplicaStoreOptions {
  readonly connection: {
    change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
  };
  /** The time in milliseconds, of one clock for all processes. */
  readonly now: () => RawBuilder<number>;
  /** Tells of changed keys; processes that hear nothing look for themselves. */
  readonly watch: (watcher: ReplicaWatcher) => ReplicaWatch;
}

/** The rows of all processes on a database. */
export class SqlReplicaStore implements ReplicaStore {
  readonly #options: ReplicaStoreOptions;
  readonly watch: ReplicaStore["watch"];

  constructor(options: ReplicaStoreOptions) {
    this.#options = options;
    this.watch = options.watch;
  }

  sign(own: ReplicaFacts, keptMs: number): Promise<ReplicasSeen> {
    const { connection, now } = this.#options;
    return connection.change(async (queries) => {
      await writeRow(queries, own, now());
      await queries
        .deleteFrom("replicas")
        .where("signedAt", "<", sql<number>`${now()} - cast(${keptMs} as bigint)`)
        .execute();
      return { replicas: await readRows(queries, now()), keysEpoch: await currentEpoch(queries) };
    });
  }

  leave(id: string): Promise<void> {
    return this.#options.connection.change(async (queries) => {
      await queries.deleteFrom("replicas").where("id", "=", id).execute();
    });
  }
}

async function writeRow(
  queries: Queries,
  own: ReplicaFacts,
  signedAt: RawBuilder<number>,
): Promise<void> {
  const { id, configDigest = null, limitsDigest = null, pepperMarks = null, ...rest } = own;
  const { keysEpoch = null, notReady = null, degraded = null, ...others } = rest;
  const compared = { configDigest, limitsDigest, pepperMarks };
  const state = { keysEpoch, notReady, degraded };
  const facts = { ...others, ...compared, ...state, signedAt };
  await queries
    .insertInto("replicas")
    .values({ id, ...facts })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(facts))
    .execute();
}

const columns = [
  "id",
  "name",
  "number",
  "version",
  "startedAt",
  "configuredAt",
  "configDigest",
  "limitsDigest",
  "pepperMarks",
  "keysEpoch",
  "adminUrl",
  "notReady",
  "degraded",
] as const;

async function readRows(queries: Queries, now: RawBuilder<number>): Promise<readonly Replica[]> {
  const rows = await queries
    .selectFrom("replicas")
    .select(columns)
    .select(sql<number>`${now} - signed_at`.as("silentMs"))
    .orderBy("name")
    .orderBy("number")
    .orderBy("id")
    .execute();
  return rows.map(present);
}
