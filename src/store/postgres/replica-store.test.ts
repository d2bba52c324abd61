import { expect, test } from "bun:test";
import { sql } from "kysely";
import { describeWithPostgres } from "../../../test/support/postgres-databases.ts";
import { systemClock } from "../../domain/clock.ts";
import type { ReplicaFacts } from "../../domain/replica.ts";
import { nextEpoch } from "../repositories/control/key-epochs.ts";
import type { PostgresConnection } from "./connection/connection.ts";
import { PostgresReplicaStore } from "./replica-store.ts";

const minuteMs = 60_000;

function factsOf(id: string, more: Partial<ReplicaFacts> = {}): ReplicaFacts {
  return {
    id,
    name: `host of ${id}`,
    version: "1.0.0",
    startedAt: 1_000,
    configuredAt: 2_000,
    configDigest: "abc",
    limitsDigest: "def",
    pepperMarks: "one,two",
    keysEpoch: 1,
    workers: 2,
    adminUrl: "http://127.0.0.1:8081",
    notReady: undefined,
    degraded: undefined,
    ...more,
  };
}

/** What a watcher was told, and waits for more. */
class Told {
  readonly epochs: (number | undefined)[] = [];
  replicas = 0;
  lost = 0;
  back = 0;

  readonly watcher = {
    keysChanged: (epoch: number | undefined) => void this.epochs.push(epoch),
    replicasChanged: () => void (this.replicas += 1),
    lost: () => void (this.lost += 1),
    back: () => void (this.back += 1),
  };
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(20);
}

function changeKeys(connection: PostgresConnection): Promise<number> {
  return connection.change((queries) => nextEpoch(queries));
}

const killListeners = sql`select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and query like 'LISTEN%'`;

describeWithPostgres((databases) => {
  async function open() {
    const url = await databases.server.createDatabase();
    const connection = await databases.connect({ url });
    await until(() =>
      connection.open().then(
        () => true,
        () => false,
      ),
    );
    return { connection, store: new PostgresReplicaStore(connection, { url }, systemClock) };
  }

  test("gateways see each other's facts until one leaves", async () => {
    const { store } = await open();
    await store.sign(factsOf("rep_a"), minuteMs);
    const other = factsOf("rep_b", { keysEpoch: undefined, notReady: "starting" });
    const { replicas, keysEpoch } = await store.sign(other, minuteMs);
    expect(replicas.map((replica) => ({ ...replica, silentMs: 0 }))).toEqual([
      { ...factsOf("rep_a"), silentMs: 0 },
      { ...other, silentMs: 0 },
    ]);
    expect(keysEpoch).toBe(0);
    await store.leave(other);
    const left = await store.sign(factsOf("rep_a"), minuteMs);
    expect(left.replicas.map(({ id }) => id)).toEqual(["rep_a"]);
  });

  test("a process that leaves neither changes nor removes the row of its successor", async () => {
    const { store } = await open();
    await store.sign(factsOf("rep_a", { startedAt: 2_000, keysEpoch: 7 }), minuteMs);
    const { replicas } = await store.sign(factsOf("rep_a", { keysEpoch: undefined }), minuteMs);
    expect(replicas[0]?.keysEpoch).toBe(7);
    await store.leave(factsOf("rep_a"));
    const after = await store.sign(factsOf("rep_b"), minuteMs);
    expect(after.replicas).toHaveLength(2);
  });

  test("a gateway without a sign grows silent and is then forgotten", async () => {
    const { connection, store } = await open();
    await store.sign(factsOf("rep_a"), minuteMs);
    const age = sql`update replicas set signed_at = signed_at - 30000`;
    await connection.change((queries) => age.execute(queries));
    const { replicas } = await store.sign(factsOf("rep_b"), minuteMs);
    expect(replicas.map(({ silentMs }) => silentMs >= 30_000)).toEqual([true, false]);
    const later = await store.sign(factsOf("rep_b"), 20_000);
    expect(later.replicas.map(({ id }) => id)).toEqual(["rep_b"]);
  });

  test("changes of keys are told with their commit, signs when they tell something new", async () => {
    const { connection, store } = await open();
    const told = new Told();
    const watch = store.watch(told.watcher);
    await until(() => told.epochs.length > 0);
    expect(told.epochs).toEqual([undefined]);
    await changeKeys(connection);
    await until(() => told.epochs.includes(1));
    await connection.change((queries) => nextEpoch(queries).then(fail)).catch(() => undefined);
    await changeKeys(connection);
    await until(() => told.epochs.includes(2));
    await store.sign(factsOf("rep_a", { keysEpoch: 2 }), minuteMs);
    await store.sign(factsOf("rep_a", { keysEpoch: 2 }), minuteMs);
    await store.sign(factsOf("rep_a", { keysEpoch: 3 }), minuteMs);
    await changeKeys(connection);
    await until(() => told.epochs.includes(3));
    expect(told.replicas).toBe(2);
    watch.stop();
  });

  test("a listener that is cut off comes back by itself and says that it may have missed", async () => {
    const { connection, store } = await open();
    const told = new Told();
    const watch = store.watch(told.watcher);
    await until(() => told.epochs.length === 1);
    await connection.change((queries) => killListeners.execute(queries));
    await until(() => told.lost === 1);
    await changeKeys(connection);
    await until(() => told.back === 1);
    expect(told.epochs.filter((epoch) => epoch === undefined)).toHaveLength(2);
    await changeKeys(connection);
    await until(() => told.epochs.includes(2));
    watch.stop();
  });
});

function fail(): never {
  throw new Error("no");
}
