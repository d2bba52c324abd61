import { expect, test } from "bun:test";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import type { LiveFacts, WantedKeys } from "../../domain/live-facts.ts";
import type { Principal } from "../../domain/principal.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import type { LiveTopic } from "../contract/live.ts";
import type { AdminServices } from "../services.ts";
import { LiveHub } from "./live-hub.ts";

const operator: Principal = {
  kind: "session",
  userId: "user_1",
  name: "ada",
  role: "operator",
  accountId: undefined,
  scopes: ["read"],
};

/** A hub whose seconds the test runs, and what it has asked the processes. */
function setUp(admin: AdminFixture, services: Partial<AdminServices> = {}) {
  const planned: (() => void)[] = [];
  const rechecks: (() => void)[] = [];
  const asked: (readonly (string | undefined)[])[] = [];
  let openCalls = 0;
  const facts = (): LiveFacts => ({
    process: 1,
    openCalls,
    loadBound: 9,
    spoolBytes: 0,
    spoolLimitBytes: 1,
    targets: [],
    gates: [],
    keys: [],
  });
  const schedule = (run: () => void, delayMs: number) => {
    const plans = delayMs > 1_000 ? rechecks : planned;
    plans.push(run);
    return () => void plans.splice(plans.indexOf(run), 1);
  };
  const clock = { now: () => 0, monotonic: () => 0, schedule };
  const live = {
    ...admin.services.live,
    facts: async ({ accountIds }: Pick<WantedKeys, "accountIds">) => {
      asked.push(accountIds);
      return [facts()];
    },
  };
  const hub = new LiveHub({ ...admin.services, ...services, clock, live });
  return {
    asked,
    planned,
    rechecks,
    isSignedIn: true,
    watch(
      accountId: string | undefined,
      topics: readonly LiveTopic[],
      userId = "user_1",
      keyIds: readonly string[] = [],
    ) {
      const principal = { ...operator, accountId, userId };
      const call = { principal, isStillSignedIn: async () => this.isSignedIn };
      return hub.watch({ call, topics, keyIds });
    },
    async second(calls: number): Promise<void> {
      openCalls = calls;
      planned.shift()?.();
      while (planned.length === 0) await Bun.sleep(1);
    },
    close: () => hub.close(),
  };
}

test("facts are read once a second for everybody, however many watch, and only while somebody does", async () => {
  await using admin = new AdminFixture();
  const hub = setUp(admin);
  const { asked, planned } = hub;
  const all = Array.from({ length: 20 }, (_, index) =>
    hub.watch(undefined, ["processes"], `user_${index}`),
  );
  const bound = [hub.watch("acct_a", ["keys"], "a"), hub.watch("acct_a", ["keys"], "b")];
  await hub.second(1);
  expect(asked).toEqual([["acct_a"]]);
  await hub.second(2);
  expect(asked).toHaveLength(2);
  for (const watcher of [...all, ...bound]) watcher.cancel();
  planned.shift()?.();
  await Bun.sleep(5);
  expect([asked.length, planned.length]).toEqual([2, 0]);
  const again = hub.watch(undefined, ["processes"]);
  await hub.second(3);
  expect(again.take()).toContain("event: full");
});

test("the newest call is told to those who may see it", async () => {
  await using admin = new AdminFixture();
  const hub = setUp(admin);
  await admin.stores.usage.insert([
    recordOf("req_mine", { startedAt: 1_000, accountId: "acct_a" }),
    recordOf("req_theirs", { startedAt: 2_000, accountId: "acct_b" }),
  ]);
  const [all, bound] = [hub.watch(undefined, ["calls"]), hub.watch("acct_a", ["calls"], "a")];
  await hub.second(1);
  expect(all.take()).toContain('{"calls":{"newest":{"id":"req_theirs"');
  const mine = bound.take() ?? "";
  expect(mine).toContain('"id":"req_mine"');
  expect(mine).not.toContain("req_theirs");
  hub.close();
});

test("a slow reader gets the newest alone, and nothing where nothing has changed", async () => {
  await using admin = new AdminFixture();
  const hub = setUp(admin);
  const watcher = hub.watch(undefined, ["processes"]);
  await hub.second(1);
  expect(watcher.take()).toContain('"open_calls":1');
  for (const calls of [2, 3, 4]) await hub.second(calls);
  const change = watcher.take() ?? "";
  expect(change).toStartWith("id: 4\nevent: change\n");
  expect(change).toContain('"open_calls":4');
  expect(watcher.take()).toBeUndefined();
  await hub.second(4);
  expect(watcher.take()).toBeUndefined();
  expect(watcher.isOver).toBe(false);
  hub.close();
  expect([watcher.take(), watcher.isOver]).toEqual([undefined, true]);
});

test("a topic that cannot be read keeps its items, is told as stale, and holds up no other", async () => {
  await using admin = new AdminFixture();
  let isDown = false;
  const { reports } = admin.services;
  const calls: typeof reports.calls = (...given) => {
    if (isDown) throw new StorageUnavailable("the database is down");
    return reports.calls(...given);
  };
  await admin.stores.usage.insert([recordOf("req_a", { startedAt: 0 })]);
  const hub = setUp(admin, { reports: { ...reports, calls } });
  const both = hub.watch(undefined, ["calls", "processes"]);
  const other = hub.watch(undefined, ["processes"], "b");
  await hub.second(1);
  expect(both.take()).not.toContain("stale");
  expect(other.take()).toContain("event: full");
  isDown = true;
  await hub.second(2);
  const told = both.take() ?? "";
  expect(told).toContain('"open_calls":2');
  expect(told).toContain('"stale":{"calls":true}');
  expect(told).not.toContain('"newest"');
  expect(other.take()).not.toContain("stale");
  isDown = false;
  await hub.second(2);
  expect(both.take()).toContain('{"stale":{"calls":null}}');
  hub.close();
});

test("a key that cannot be read holds up no other watcher", async () => {
  await using admin = new AdminFixture();
  const { store } = admin.services;
  let isDown = true;
  const read: typeof store.read = (work) => {
    if (isDown) throw new StorageUnavailable("the database is down");
    return store.read(work);
  };
  const hub = setUp(admin, { store: { ...store, read } });
  const ofKey = hub.watch("acct_a", ["key"], "a", ["key_a"]);
  const processes = hub.watch(undefined, ["processes"]);
  await hub.second(1);
  expect(processes.take()).toContain('"open_calls":1');
  expect(ofKey.take()).toContain('{"key":{},"stale":{"key":true}}');
  isDown = false;
  await hub.second(1);
  expect(ofKey.take()).toContain('{"key":{"key_a":{');
  hub.close();
});

test("an ended session is noticed without a read", async () => {
  await using admin = new AdminFixture();
  const hub = setUp(admin);
  const watcher = hub.watch(undefined, ["processes"]);
  hub.isSignedIn = false;
  hub.rechecks.shift()?.();
  while (hub.rechecks.length === 0) await Bun.sleep(1);
  expect(watcher.take()).toStartWith("event: end\n");
  expect(watcher.isOver).toBe(true);
  hub.close();
});

test("a closed hub reads no more and refuses to be watched", async () => {
  await using admin = new AdminFixture();
  const hub = setUp(admin);
  hub.watch(undefined, ["processes"]);
  await hub.second(1);
  hub.close();
  expect([hub.planned, hub.rechecks]).toEqual([[], []]);
  expect(() => hub.watch(undefined, ["processes"])).toThrow(/ending/u);
  expect(hub.planned).toEqual([]);
});
