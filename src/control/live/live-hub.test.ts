import { expect, test } from "bun:test";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import type { LiveFacts } from "../../domain/live-facts.ts";
import type { Principal } from "../../domain/principal.ts";
import type { LiveTopic } from "../contract/live.ts";
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
function setUp(admin: AdminFixture) {
  const planned: (() => void)[] = [];
  const asked: (string | undefined)[] = [];
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
  const schedule = (run: () => void) => {
    planned.push(run);
    return () => void planned.splice(planned.indexOf(run), 1);
  };
  const clock = { now: () => 0, monotonic: () => 0, schedule };
  const live = {
    ...admin.services.live,
    facts: async ({ accountId }: { accountId?: string | undefined } = {}) => {
      asked.push(accountId);
      return [facts()];
    },
  };
  const hub = new LiveHub({ ...admin.services, clock, live });
  return {
    asked,
    planned,
    watch(accountId: string | undefined, topics: readonly LiveTopic[], userId = "user_1") {
      const principal = { ...operator, accountId, userId };
      const call = { principal, isStillSignedIn: async () => true };
      return hub.watch({ call, topics, keyIds: [] });
    },
    async second(calls: number): Promise<void> {
      openCalls = calls;
      planned.shift()?.();
      while (planned.length === 0) await Bun.sleep(1);
    },
    close: () => hub.close(),
  };
}

test("each audience is read once a second, however many watch, and only while somebody does", async () => {
  await using admin = new AdminFixture();
  const hub = setUp(admin);
  const { asked, planned } = hub;
  const all = Array.from({ length: 20 }, (_, index) =>
    hub.watch(undefined, ["processes"], `user_${index}`),
  );
  const bound = [hub.watch("acct_a", ["keys"], "a"), hub.watch("acct_a", ["keys"], "b")];
  await hub.second(1);
  expect(new Set(asked)).toEqual(new Set([undefined, "acct_a"]));
  expect(asked).toHaveLength(2);
  await hub.second(2);
  expect(asked).toHaveLength(4);
  for (const watcher of [...all, ...bound]) watcher.cancel();
  planned.shift()?.();
  await Bun.sleep(5);
  expect([asked.length, planned.length]).toEqual([4, 0]);
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
