import { expect, test } from "bun:test";
import { accountOf, applicationOf, keyOf } from "../../../../test/contracts/control-fixtures.ts";
import { recordOf } from "../../../../test/contracts/usage-fixtures.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { freePort } from "../../../../test/support/free-port.ts";
import { OtherSchema, StorageUnavailable, WrongDatabase } from "../../errors.ts";
import type { DatabaseFacts } from "../../store.ts";
import type { SqlConnection } from "../../repositories/tables.ts";
import { ControlStore } from "../../repositories/control-store.ts";
import { SqlUsageStore } from "../../repositories/usage/usage-store.ts";
import { isFaultOfData } from "./postgres-trouble.ts";
import { PostgresConnection } from "./connection.ts";
import { sql } from "kysely";
import { testPeppers } from "../../../../test/support/test-peppers.ts";

describeWithPostgres((databases) => {
  const reopened = { reopenIntervalMs: 0 };

  test("gateways that start together on an empty database create its schema once", async () => {
    const url = await databases.server.createDatabase();
    const connections = await Promise.all([1, 2, 3, 4].map(() => databases.connect({ url })));
    await Promise.all(connections.map((connection) => connection.open()));
    const [one] = connections;
    await new ControlStore(one ?? (await databases.connect({ url })), testPeppers()).change((to) =>
      to.accounts.insert(accountOf("acct_a")),
    );
    for (const connection of connections) {
      const store = new ControlStore(connection, testPeppers());
      expect((await store.read((view) => view.accounts.get("acct_a")))?.id).toBe("acct_a");
    }
  });

  test("changes of several gateways run one after another, with one epoch for each", async () => {
    const url = await databases.server.createDatabase();
    const stores = await Promise.all(
      [1, 2, 3].map(async () => new ControlStore(await databases.connect({ url }), testPeppers())),
    );
    const application = applicationOf("app_a");
    await stores[0]?.change(async (to) => {
      await to.accounts.insert(accountOf("acct_a", { maxKeys: 0 }));
      await to.applications.insert(application);
    });
    const raise = (store: ControlStore, round: number): Promise<unknown> =>
      store.change(async (to) => {
        const account = await to.accounts.get("acct_a");
        if (account === undefined) throw new Error("the account is gone");
        await to.accounts.update({ ...account, maxKeys: account.maxKeys + 1 });
        await to.keys.insert(keyOf(`key_${account.maxKeys}_${round}`, application));
      });
    const rounds = Array.from({ length: 8 }, (_, round) => round);
    await Promise.all(stores.flatMap((store) => rounds.map((round) => raise(store, round))));
    const account = await stores[1]?.read((view) => view.accounts.get("acct_a"));
    expect(account?.maxKeys).toBe(24);
  });

  test("the same calls stored by two gateways at once are counted once", async () => {
    const url = await databases.server.createDatabase();
    const connections = await Promise.all([1, 2].map(() => databases.connect({ url })));
    const records = Array.from({ length: 50 }, (_, index) => recordOf(`req_${index}`));
    await Promise.all(
      connections.map((connection) =>
        new SqlUsageStore(connection.inLane("usage"), {
          isFaultOfData,
          clock: Date,
          peppers: testPeppers(),
        }).insert(records),
      ),
    );
    const counted = await connections[0]?.read((queries) =>
      sql<{
        calls: number;
      }>`select sum(calls) as calls from usage_sums where grain = 'hour'`.execute(queries),
    );
    expect(counted?.rows).toEqual([{ calls: 50 }]);
  });

  test("a batch of usage that takes long delays no change of a key and no reading", async () => {
    const connection = await databases.connect();
    const control = new ControlStore(connection, testPeppers());
    const written = Promise.withResolvers<void>();
    const storing = connection.inLane("usage").change(() => written.promise);
    await control.change((to) => to.accounts.insert(accountOf("acct_a")));
    expect((await control.read((view) => view.accounts.get("acct_a")))?.id).toBe("acct_a");
    written.resolve();
    await storing;
  });

  test("a gateway that stops in the middle of a change does not keep others from theirs", async () => {
    const url = await databases.server.createDatabase();
    const frozen = await databases.connect({ url, statementTimeoutMs: 2_000 });
    const other = new ControlStore(await databases.connect({ url }), testPeppers());
    await untilAvailable(() => frozen.open());
    const hasBegun = Promise.withResolvers<void>();
    const thaws = Promise.withResolvers<void>();
    const changing = frozen.change(async () => {
      hasBegun.resolve();
      await thaws.promise;
    });
    await hasBegun.promise;
    // Waits for the lane, until the server ends the idle transaction.
    await other.change((to) => to.accounts.insert(accountOf("acct_a")));
    thaws.resolve();
    expect(await changing.catch((error: unknown) => error)).toBeInstanceOf(StorageUnavailable);
  });

  test("a database of another version is refused and left as it is", async () => {
    const url = await databases.server.createDatabase();
    const first = await databases.connect({ url });
    const setVersion = sql`update schema_version set version = 1000`;
    await first.change((queries) => setVersion.execute(queries));
    const second = await databases.connect({ url });
    expect(second.open()).rejects.toBeInstanceOf(OtherSchema);
    await second.open().catch(() => undefined);
  });

  test("a database that its owner refuses is not written to", async () => {
    const url = await databases.server.createDatabase();
    const seen: DatabaseFacts[] = [];
    const owner = {
      check(facts: DatabaseFacts): void {
        seen.push(facts);
        throw new WrongDatabase(facts.path, "is of another", "Please correct it.");
      },
      claim: () => ({ installation: "inst_a", pepperMark: "mark", at: 1 }),
    };
    const refused = await databases.connect({ url, owner });
    expect(refused.open()).rejects.toBeInstanceOf(WrongDatabase);
    await refused.open().catch(() => undefined);
    expect(seen[0]).toMatchObject({ state: "empty", installation: undefined });
    const claiming = await databases.connect({ url, owner: { ...owner, check: () => undefined } });
    await claiming.open();
    const facts: DatabaseFacts[] = [];
    const again = { ...owner, check: (found: DatabaseFacts) => void facts.push(found) };
    await (await databases.connect({ url, owner: again })).open();
    expect(facts[0]).toMatchObject({ installation: "inst_a", pepperMark: "mark" });
  });

  test("after a crash of the server the same connection works again", async () => {
    const events: string[] = [];
    const connection = await databases.connect({
      ...reopened,
      onTrouble: (what) => void events.push(what),
      onRecovered: () => void events.push("recovered"),
    });
    const store = new ControlStore(connection, testPeppers());
    await store.change((to) => to.accounts.insert(accountOf("acct_a")));
    await databases.server.kill();
    const read = () => store.read((view) => view.accounts.get("acct_a"));
    expect(read()).rejects.toBeInstanceOf(StorageUnavailable);
    await read().catch(() => undefined);
    await databases.server.start();
    expect((await untilAvailable(read))?.id).toBe("acct_a");
    expect(events[0]).toBe("cannot be reached");
    expect(events.at(-1)).toBe("recovered");
  });

  test("changes read what others committed, whatever the database's default", async () => {
    const url = await databases.server.createDatabase();
    const setDefault = sql`alter database ${sql.ref(new URL(url).pathname.slice(1))}
      set default_transaction_isolation = serializable`;
    await (await databases.connect({ url })).change((queries) => setDefault.execute(queries));
    const [one, other] = [await databases.connect({ url }), await databases.connect({ url })];
    await Promise.all([one.open(), other.open()]);
    const hasBegun = Promise.withResolvers<void>();
    const commits = Promise.withResolvers<void>();
    const changing = new ControlStore(one, testPeppers()).change(async (to) => {
      await to.accounts.insert(accountOf("acct_a"));
      hasBegun.resolve();
      await commits.promise;
    });
    await hasBegun.promise;
    const reading = new ControlStore(other, testPeppers()).change((to) =>
      to.accounts.get("acct_a"),
    );
    await untilOneWaits(other.inLane("usage"));
    commits.resolve();
    await changing;
    expect((await reading)?.id).toBe("acct_a");
  });

  test("a frozen server fails a statement instead of holding it", async () => {
    const connection = await databases.connect({
      ...reopened,
      statementTimeoutMs: 300,
      connectTimeoutMs: 1_000,
    });
    const store = new ControlStore(connection, testPeppers());
    const read = () => store.read((view) => view.accounts.get("acct_a"));
    await untilAvailable(read);
    databases.server.signal("SIGSTOP");
    try {
      expect(await read().catch((error: unknown) => error)).toBeInstanceOf(StorageUnavailable);
    } finally {
      databases.server.signal("SIGCONT");
    }
    expect(await untilAvailable(read)).toBeUndefined();
  });

  test("a server that freezes while it is checked does not hold the gateway for ever", async () => {
    const url = await databases.server.createDatabase();
    let isFreezing = true;
    const owner = {
      check(): void {
        if (isFreezing) databases.server.signal("SIGSTOP");
      },
      claim: () => ({ installation: "inst_a", pepperMark: "mark", at: 1 }),
    };
    const options = { url, owner, statementTimeoutMs: 300, ...reopened };
    const connection = await databases.connect(options);
    try {
      expect(await connection.open().catch((error: unknown) => error)).toBeInstanceOf(
        StorageUnavailable,
      );
    } finally {
      isFreezing = false;
      databases.server.signal("SIGCONT");
    }
    await untilAvailable(() => connection.open());
  });

  test("readers that occupy all connections are no failure of the database", async () => {
    const troubles: string[] = [];
    const connection = await databases.connect({
      poolSize: 1,
      connectTimeoutMs: 1_000,
      onTrouble: (what) => void troubles.push(what),
    });
    await untilAvailable(() => connection.open());
    troubles.length = 0;
    const hasBegun = Promise.withResolvers<void>();
    const ends = Promise.withResolvers<void>();
    const reading = connection.read(async () => {
      hasBegun.resolve();
      await ends.promise;
    });
    await hasBegun.promise;
    const store = new ControlStore(connection, testPeppers());
    const read = () => store.read((view) => view.accounts.get("acct_a"));
    expect(await read().catch((error: unknown) => error)).toBeInstanceOf(StorageUnavailable);
    ends.resolve();
    await reading;
    expect(await read()).toBeUndefined();
    expect(troubles).toEqual([]);
  });

  test("one broken connection is enough to give up all that were made before", async () => {
    const connection = await databases.connect({ ...reopened, statementTimeoutMs: 1_000 });
    const readPid = (wait: Promise<unknown>) =>
      connection.read(async (queries) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(
          queries,
        );
        await wait;
        return rows[0]?.pid ?? 0;
      });
    await untilAvailable(() => connection.open());
    const ends = Promise.withResolvers<void>();
    let begun = 0;
    const wait = async (): Promise<number> => {
      const pid = await readPid(
        Promise.resolve().then(() => {
          begun += 1;
          if (begun === 3) ends.resolve();
          return ends.promise;
        }),
      );
      return pid;
    };
    const pids = await Promise.all([wait(), wait(), wait()]);
    expect(new Set(pids).size).toBe(3);
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    try {
      const failure = await readPid(Promise.resolve()).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(StorageUnavailable);
      expect(pids).not.toContain(await readPid(Promise.resolve()));
    } finally {
      for (const pid of pids) process.kill(pid, "SIGCONT");
    }
  });

  test("no message shows the password", async () => {
    const port = freePort();
    const url = `postgres://user:geheim@127.0.0.1:${port}/sluice?sslmode=disable`;
    await using connection = new PostgresConnection({ url });
    const failure = await connection.open().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StorageUnavailable);
    expect(Bun.inspect(failure)).not.toContain("geheim");
    expect(String(failure)).toContain(`postgres://user@127.0.0.1:${port}/sluice`);
  });
});

async function untilAvailable<Result>(read: () => Promise<Result>): Promise<Result> {
  while (true) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      await Bun.sleep(20);
    }
  }
}

/** Until a connection to the same database waits for a lock. */
async function untilOneWaits({ read }: Pick<SqlConnection, "read">): Promise<void> {
  const waiting = sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  while (true) {
    const { rows } = await read((queries) => waiting.execute(queries));
    if (rows.length > 0) return;
    await Bun.sleep(20);
  }
}
