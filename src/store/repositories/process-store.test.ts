import { describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { describeWithPostgres } from "../../../test/support/postgres-databases.ts";
import { until } from "../../../test/support/until.ts";
import { systemClock } from "../../domain/clock.ts";
import type { OwnProcessRow } from "../process-row.ts";
import { NoticeListener } from "../postgres/connection/notices.ts";
import { serverTime } from "../postgres/open-stores.ts";
import { openStores } from "../sqlite/open-stores.ts";
import { nextEpoch } from "./control/key-epochs.ts";
import { processesIn, type KeysWatcher, type ProcessStore } from "./process-store.ts";
import type { SqlConnection } from "./tables.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

const minuteMs = 60_000;

function factsOf(id: string, more: Partial<OwnProcessRow> = {}): OwnProcessRow {
  return {
    id,
    name: `host of ${id}`,
    number: 1,
    version: "1.0.0",
    startedAt: 1_000,
    configuredAt: 2_000,
    configDigest: "abc",
    limitsDigest: "def",
    pepperMarks: "one,two",
    keysEpoch: 1,
    chargesAs: undefined,
    ingest: "none",
    adminUrl: "http://127.0.0.1:8081",
    notReady: undefined,
    degraded: undefined,
    ...more,
  };
}

/** A database of its own, where a process has its row. */
interface Database {
  readonly store: ProcessStore;
  readonly connection: Pick<SqlConnection, "change">;
}

function processStoreContract(name: string, open: () => Database | Promise<Database>): void {
  describe(`the rows of processes in ${name}`, () => {
    test("have all that a process tells, until it leaves", async () => {
      const { store } = await open();
      await store.sign(factsOf("mac_a"), minuteMs);
      const nothing = {
        configDigest: undefined,
        limitsDigest: undefined,
        pepperMarks: undefined,
        keysEpoch: undefined,
      };
      const other = factsOf("mac_b", { ...nothing, notReady: "starting", degraded: "no limits" });
      const { processes, keysEpoch } = await store.sign(other, minuteMs);
      expect(processes.map((process) => ({ ...process, silentMs: 0 }))).toEqual([
        { ...factsOf("mac_a"), silentMs: 0 },
        { ...other, silentMs: 0 },
      ]);
      expect(keysEpoch).toBe(0);
      await store.leave(other.id);
      const left = await store.sign(factsOf("mac_a"), minuteMs);
      expect(left.processes.map(({ id }) => id)).toEqual(["mac_a"]);
    });

    test("are read with the newest change of keys", async () => {
      const { connection, store } = await open();
      await connection.change((queries) => nextEpoch(queries));
      await connection.change((queries) => nextEpoch(queries));
      expect((await store.sign(factsOf("mac_a"), minuteMs)).keysEpoch).toBe(2);
    });

    test("are one for each process, which says what holds now", async () => {
      const { store } = await open();
      await store.sign(factsOf("mac_a", { notReady: "starting", keysEpoch: undefined }), minuteMs);
      const { processes } = await store.sign(factsOf("mac_a", { keysEpoch: 7 }), minuteMs);
      expect(processes).toHaveLength(1);
      expect(processes[0]).toMatchObject({ keysEpoch: 7, notReady: undefined });
    });

    test("come by host and number", async () => {
      const { store } = await open();
      for (const [id, name, number] of [
        ["mac_1", "b", 1],
        ["mac_2", "a", 2],
        ["mac_3", "a", 1],
      ] as const) {
        await store.sign(factsOf(id, { name, number }), minuteMs);
      }
      const { processes } = await store.sign(factsOf("mac_4", { name: "b", number: 10 }), minuteMs);
      expect(processes.map(({ id }) => id)).toEqual(["mac_3", "mac_2", "mac_1", "mac_4"]);
    });

    test("grow silent without a sign, and are then forgotten", async () => {
      const { connection, store } = await open();
      await store.sign(factsOf("mac_a"), minuteMs);
      const age = sql`update processes set signed_at = signed_at - 30000`;
      await connection.change((queries) => age.execute(queries));
      const { processes } = await store.sign(factsOf("mac_b"), minuteMs);
      expect(processes.map(({ silentMs }) => silentMs >= 30_000)).toEqual([true, false]);
      const later = await store.sign(factsOf("mac_b"), 20_000);
      expect(later.processes.map(({ id }) => id)).toEqual(["mac_b"]);
    });
  });
}

processStoreContract("SQLite", () => {
  const { connection, processes } = openStores(":memory:", systemClock, { peppers: testPeppers() });
  return { connection, store: processes };
});

test("nobody announces changes in a file", () => {
  const { watchKeys } = openStores(":memory:", systemClock, { peppers: testPeppers() });
  const told = new Told();
  watchKeys(told.watcher).stop();
  expect([told.epochs, told.lost, told.back]).toEqual([[], 0, 0]);
});

/** What a watcher was told. */
class Told {
  readonly epochs: (number | undefined)[] = [];
  lost = 0;
  back = 0;

  readonly watcher = {
    keysChanged: (epoch: number | undefined) => void this.epochs.push(epoch),
    lost: () => void (this.lost += 1),
    back: () => void (this.back += 1),
  };
}

const killListeners = sql`select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and query like 'LISTEN%'`;

describeWithPostgres((databases) => {
  async function open() {
    const url = await databases.server.createDatabase();
    const connection = await databases.connect({ url });
    const store = processesIn(connection.inLane(undefined), () => serverTime);
    const watch = (watcher: KeysWatcher): NoticeListener =>
      new NoticeListener({ connection: { url }, clock: systemClock, watcher });
    return { connection, store, watch };
  }

  const changeKeys = ({ connection }: Database): Promise<number> =>
    connection.change((queries) => nextEpoch(queries));

  processStoreContract("PostgreSQL", open);

  test("changes of keys are told with their commit, and signs are not told", async () => {
    const database = await open();
    const told = new Told();
    const watch = database.watch(told.watcher);
    await until(() => told.epochs.length > 0);
    expect(told.epochs).toEqual([undefined]);
    await changeKeys(database);
    await until(() => told.epochs.includes(1));
    const undone = database.connection.change((queries) => nextEpoch(queries).then(fail));
    await undone.catch(() => undefined);
    await changeKeys(database);
    await until(() => told.epochs.includes(2));
    await database.store.sign(factsOf("mac_a", { keysEpoch: 2 }), minuteMs);
    await changeKeys(database);
    await until(() => told.epochs.includes(3));
    expect(new Set(told.epochs)).toEqual(new Set([undefined, 1, 2, 3]));
    watch.stop();
  });

  test("a listener that is cut off comes back by itself and says that it may have missed", async () => {
    const database = await open();
    const told = new Told();
    const watch = database.watch(told.watcher);
    await until(() => told.epochs.length === 1);
    await database.connection.change((queries) => killListeners.execute(queries));
    await until(() => told.lost === 1);
    await changeKeys(database);
    await until(() => told.back === 1);
    expect(told.epochs.filter((epoch) => epoch === undefined)).toHaveLength(2);
    await changeKeys(database);
    await until(() => told.epochs.includes(2));
    watch.stop();
  });
});

function fail(): never {
  throw new Error("no");
}
