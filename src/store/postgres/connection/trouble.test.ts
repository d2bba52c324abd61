import { expect, test } from "bun:test";
import { sql } from "kysely";
import { accountOf } from "../../../../test/contracts/control-fixtures.ts";
import { recordOf } from "../../../../test/contracts/usage-fixtures.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { StorageUnavailable } from "../../errors.ts";
import { ControlStore } from "../../repositories/control-store.ts";
import { SqlUsageStore } from "../../repositories/usage/usage-store.ts";
import { LaneQueue } from "./lanes.ts";
import { isFaultOfData, meaningOf, troubleOf } from "./postgres-trouble.ts";
import { testPeppers } from "../../../../test/support/test-peppers.ts";

describeWithPostgres((databases) => {
  test("a full disk is one trouble until a change works, however many reads work meanwhile", async () => {
    const events: string[] = [];
    const connection = await databases.connect({
      reopenIntervalMs: 0,
      onTrouble: (what) => void events.push(what),
      onRecovered: () => void events.push("recovered"),
    });
    const store = new ControlStore(connection, testPeppers());
    const insert = (id: string): Promise<unknown> =>
      store.change((to) => to.accounts.insert(accountOf(id))).catch((error: unknown) => error);
    await connection.change(async (queries) => {
      await sql`create function fill() returns trigger language plpgsql as $$
        begin raise exception 'full' using errcode = '53100'; end $$`.execute(queries);
      await sql`create trigger fills before insert on accounts
        for each row execute function fill()`.execute(queries);
    });
    for (const id of ["acct_a", "acct_b"]) {
      expect(await insert(id)).toBeInstanceOf(StorageUnavailable);
      expect(await store.read((view) => view.accounts.get(id))).toBeUndefined();
    }
    expect(events).toEqual(["has no space left"]);
    const drop = sql`drop trigger fills on accounts`;
    await connection.inLane("usage").change((queries) => drop.execute(queries));
    expect(events).toEqual(["has no space left", "recovered"]);
    await insert("acct_c");
    expect(events).toHaveLength(2);
  });

  test("a call may have more attempts than a small number holds", async () => {
    const connection = await databases.connect();
    const store = new SqlUsageStore(connection.inLane("usage"), {
      isFaultOfData,
      clock: Date,
      peppers: testPeppers(),
    });
    await store.insert([recordOf("req_1", { attempts: 40_000 })]);
    const { rows } = await connection.read((queries) =>
      sql`select attempts from usage`.execute(queries),
    );
    expect(rows).toEqual([{ attempts: 40_000 }]);
  });
});

test("an error of the program is no outage, and one of the connection is", () => {
  const mistake = new TypeError("Do not know how to serialize a BigInt");
  expect([troubleOf(mistake), meaningOf(mistake)]).toEqual([undefined, mistake]);
  const refused = Object.assign(new AggregateError([]), { code: "ECONNREFUSED" });
  for (const lost of [new Error("Connection terminated unexpectedly"), refused]) {
    expect(meaningOf(lost)).toBeInstanceOf(StorageUnavailable);
  }
});

test("a change that waits too long for those before it is given up, and the next one keeps its place", async () => {
  const lanes = new LaneQueue(1);
  const ends = Promise.withResolvers<void>();
  const done: string[] = [];
  const first = lanes.run("entities", async () => {
    await ends.promise;
    done.push("first");
  });
  const second = lanes.run("entities", () => Promise.resolve(done.push("second")));
  expect(await second.catch((error: unknown) => error)).toBeInstanceOf(StorageUnavailable);
  const idle = lanes.idle("entities").then(() => done.push("idle"));
  ends.resolve();
  await Promise.all([first, idle]);
  await lanes.run("entities", () => Promise.resolve(done.push("third")));
  expect(done).toEqual(["first", "idle", "third"]);
});
