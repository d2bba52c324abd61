import { sql } from "kysely";
import type { Clock } from "../../domain/clock.ts";
import type { Replica, ReplicaFacts } from "../../domain/replica.ts";
import { currentEpoch } from "../repositories/control/key-epochs.ts";
import { present } from "../repositories/row.ts";
import type { Queries } from "../repositories/tables.ts";
import type { ReplicaStore, ReplicasSeen, ReplicaWatch, ReplicaWatcher } from "../replicas.ts";
import type { PostgresConnection } from "./connection/connection.ts";
import { NoticeListener, tellReplicas } from "./connection/notices.ts";
import type { PoolOptions } from "./connection/pool.ts";

/** The clocks of gateways differ. */
export const serverTime = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/** The gateways on a PostgreSQL database. */
export class PostgresReplicaStore implements ReplicaStore {
  readonly #connection: PostgresConnection;
  readonly #options: PoolOptions;
  readonly #clock: Clock;

  constructor(connection: PostgresConnection, options: PoolOptions, clock: Clock) {
    this.#connection = connection;
    this.#options = options;
    this.#clock = clock;
  }

  sign(own: ReplicaFacts, keptMs: number): Promise<ReplicasSeen> {
    // Each gateway writes its own row, so a frozen one must not stop the others.
    return this.#connection.inLane(undefined).change(async (queries) => {
      const before = await queries
        .selectFrom("replicas")
        .select("keysEpoch")
        .where("id", "=", own.id)
        .executeTakeFirst();
      await writeRow(queries, own);
      const known = before?.keysEpoch ?? undefined;
      if (known !== own.keysEpoch) await sql.raw(tellReplicas).execute(queries);
      await queries
        .deleteFrom("replicas")
        .where("signedAt", "<", sql<number>`${serverTime} - cast(${keptMs} as bigint)`)
        .execute();
      return { replicas: await readRows(queries), keysEpoch: await currentEpoch(queries) };
    });
  }

  leave({ id, startedAt }: Pick<ReplicaFacts, "id" | "startedAt">): Promise<void> {
    return this.#connection.inLane(undefined).change(async (queries) => {
      await queries
        .deleteFrom("replicas")
        .where("id", "=", id)
        .where("startedAt", "=", startedAt)
        .execute();
    });
  }

  watch(watcher: ReplicaWatcher): ReplicaWatch {
    return new NoticeListener({ connection: this.#options, clock: this.#clock, watcher });
  }
}

async function writeRow(queries: Queries, own: ReplicaFacts): Promise<void> {
  const { id, configDigest = null, limitsDigest = null, pepperMarks = null, ...rest } = own;
  const { keysEpoch = null, notReady = null, degraded = null, ...others } = rest;
  const compared = { configDigest, limitsDigest, pepperMarks };
  const state = { keysEpoch, notReady, degraded };
  const facts = { ...others, ...compared, ...state, signedAt: serverTime };
  await queries
    .insertInto("replicas")
    .values({ id, ...facts })
    .onConflict((conflict) =>
      conflict
        .column("id")
        .doUpdateSet(facts)
        // A process that leaves must not write over its successor.
        .where("replicas.startedAt", "<=", own.startedAt),
    )
    .execute();
}

const columns = [
  "id",
  "name",
  "version",
  "startedAt",
  "configuredAt",
  "configDigest",
  "limitsDigest",
  "pepperMarks",
  "keysEpoch",
  "workers",
  "adminUrl",
  "notReady",
  "degraded",
] as const;

async function readRows(queries: Queries): Promise<readonly Replica[]> {
  const rows = await queries
    .selectFrom("replicas")
    .select(columns)
    .select(sql<number>`${serverTime} - signed_at`.as("silentMs"))
    .orderBy("name")
    .orderBy("id")
    .execute();
  return rows.map(present);
}
