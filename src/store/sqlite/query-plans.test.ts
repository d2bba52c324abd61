import { beforeAll, describe, expect, test } from "bun:test";
import {
  accountOf,
  applicationOf,
  keyOf,
  secretOf,
} from "../../../test/contracts/control-fixtures.ts";
import { plansOf } from "../../../test/support/query-plans.ts";
import type { AuditFilter, KeyFilter } from "../control-store.ts";
import type { ControlView } from "../repositories/control-store.ts";
import { ControlStore } from "../repositories/control-store.ts";
import { encodeCursor } from "../repositories/cursor.ts";
import { SqlKeyStore } from "../repositories/key-store.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

/** The cost of a list must depend on its page, not on the number of rows. */
describe("plans of queries", () => {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const store = new ControlStore(connection, testPeppers());

  beforeAll(() => fill(store));

  /** The steps of all statements of a read. */
  async function stepsOf(
    read: (view: ControlView) => Promise<unknown>,
  ): Promise<readonly string[]> {
    const plans = await plansOf(connection, () => store.read(read));
    return plans.flatMap(({ steps }) => steps);
  }

  function expectIndexed(steps: readonly string[]): void {
    expect(
      steps.filter((step) => !/\bUSING (?:(?:COVERING )?I|PRIMARY)|^LIST SUBQUERY/.test(step)),
    ).toEqual([]);
  }

  const page = { limit: 50, after: encodeCursor({ at: 5_000, id: "x" }) };
  /** The steps of the list itself; an earlier statement finds its bounds. */
  async function stepsOfKeys(filter: KeyFilter): Promise<readonly string[]> {
    const plans = await plansOf(connection, () =>
      store.read((view) => view.keys.list(filter, page)),
    );
    return plans.at(-1)?.steps ?? [];
  }

  test("every list of entities follows an index in its order", async () => {
    const isActive = { value: true, now: 1 };
    const filters: readonly KeyFilter[] = [
      {},
      { isActive },
      { accountId: "a", isActive },
      { accountId: "a", environment: "e" },
      { applicationId: "a", plan: "p" },
      { applicationId: "a", accountId: "a" },
      { environment: "e", plan: "p" },
      { provisionedPool: "m", accountId: "a", plan: "p", countsAt: 1 },
    ];
    for (const filter of filters) {
      expectIndexed(await stepsOf((view) => view.keys.list(filter, page)));
    }
    expectIndexed(await stepsOf((view) => view.accounts.list({}, page)));
    const owners = [{}, { accountId: "a" }, { accountId: "a", applicationId: "b" }, { keyId: "k" }];
    for (const filter of owners) {
      expectIndexed(await stepsOf((view) => view.budgets.list(filter, page)));
    }
    for (const filter of [{}, { environment: "e" }]) {
      expectIndexed(await stepsOf((view) => view.applications.list(filter, page)));
    }
    for (const filter of [{}, { role: "auditor" }, { accountId: "a" }] as const) {
      expectIndexed(await stepsOf((view) => view.users.list(filter, page)));
    }
    for (const filter of [{}, { userId: "u" }]) {
      expectIndexed(await stepsOf((view) => view.tokens.list(filter, page)));
    }
  });

  test("lists of one account read only its rows", async () => {
    const keys = await stepsOfKeys({ accountId: "a" });
    expect(keys[0]).toContain("keys_by_account (account_id=? AND");
    const narrower = await stepsOfKeys({ accountId: "a", applicationId: "b" });
    expect(narrower[0]).toContain("keys_by_application (application_id=? AND");
    const users = await stepsOf((view) => view.users.list({ accountId: "a" }, page));
    expect(users[0]).toContain("users_by_account (account_id=? AND");
    const applications = await stepsOf((view) => view.applications.list({ accountId: "a" }, page));
    expect(applications[0]).toContain("(account_id=?");
  });

  test("rare rows are found by their index", async () => {
    const counts = await stepsOf((view) => view.keys.countLive("a", 7));
    expect(counts.join("\n")).toContain("keys_live_by_account (account_id=?)");
    expect((await stepsOfKeys({ plan: "p" }))[0]).toContain("keys_by_plan (plan=? AND");
    const ofPool = { provisionedPool: "m", accountId: "a", applicationId: "b", countsAt: 1 };
    expect((await stepsOfKeys(ofPool))[0]).toContain("keys_by_pool (provisioned_pool=? AND");
    for (const filter of [{ now: 1 }, { pool: "m", now: 1 }, { accountId: "a", now: 1 }]) {
      const sums = await stepsOf((view) => view.keys.soldUnits(filter));
      expect(sums).toEqual([expect.stringContaining("USING INDEX keys_by_pool")]);
    }
    const applications = await stepsOf((view) =>
      view.applications.list({ environment: "e" }, page),
    );
    expect(applications[0]).toContain("applications_by_environment (environment=? AND");
    const users = await stepsOf((view) => view.users.list({ role: "auditor" }, page));
    expect(users[0]).toContain("users_by_role (role=? AND");
  });

  test("what is due soon is found by its end", async () => {
    const soon = { now: 1, before: 2, limit: 5, accountId: "a" };
    const [keys] = await stepsOf((view) => view.due.keysDue(soon));
    expect(keys).toContain("keys_by_expiry (expires_at>? AND expires_at<?)");
    const [tokens] = await stepsOf((view) => view.due.tokensDue(soon, "u"));
    expect(tokens).toContain("management_tokens_by_end (expires_at>? AND expires_at<?)");
    const [rotations] = await stepsOf((view) => view.due.rotationsDue(soon));
    expect(rotations).toContain("secrets_by_end (expires_at>? AND expires_at<?)");
  });

  test("lists of the audit follow its sequence, within the filter", async () => {
    const after = encodeCursor({ at: 1_000, id: "" });
    const listOf = (filter: AuditFilter) =>
      stepsOf((view) => view.audit.list(filter, { limit: 50, after }));
    const filters: readonly AuditFilter[] = [
      {},
      { accountId: "a" },
      { actorId: "a" },
      { action: "a" },
      { subjectId: "a" },
      { since: 1, until: 2 },
      { accountId: "a", action: "b", since: 1 },
    ];
    for (const filter of filters) expectIndexed(await listOf(filter));
    const plan = await listOf({ accountId: "a" });
    expect(plan[0]).toContain("audit_by_account (account_id=? AND sequence<?)");
  });

  test("changed keys are found by their epoch", async () => {
    const ring = new SqlKeyStore(connection, { now: () => 1 });
    const plans = await plansOf(connection, () => ring.loadKeys(1, 500));
    for (const { steps } of plans) {
      const isOfUnion = /TEMP B-TREE|^(?:MERGE \(UNION ALL\)|LEFT|RIGHT)$/;
      expectIndexed(steps.filter((step) => !isOfUnion.test(step)));
    }
    const [epoch, changes, removals, secrets] = plans;
    expect(epoch?.sql).toContain("epochs");
    expect(changes?.steps[0]).toContain("keys_by_epoch (changed_epoch>?)");
    expect(changes?.steps.join()).not.toContain("TEMP B-TREE");
    expect(removals?.steps).toEqual([expect.stringContaining("INTEGER PRIMARY KEY (rowid>?)")]);
    expect(secrets?.steps[0]).toContain("keys_by_epoch (changed_epoch>? AND changed_epoch<?)");
    expect(secrets?.steps[1]).toContain("secrets_by_key (key_id=?)");
  });

  test("expired rows are found by their age", async () => {
    const limits = { audit: 1, keys: 1, access: 1, replies: 1 };
    const plans = await plansOf(connection, () => store.prune(limits, 100));
    const removals = plans.filter(({ sql }) => /delete from.* in \(\s*select/s.test(sql));
    expect(removals).toHaveLength(13);
    // The newest records of removed keys are skipped one by one; budgets have few rows.
    const scanned = ["SCAN left_limit_scopes", "SCAN removed_keys", "SCALAR SUBQUERY 1"];
    scanned.push("SCAN budget_spend", "SCAN budget_alerts");
    for (const { steps } of removals) {
      expectIndexed(steps.filter((step) => !scanned.includes(step)));
    }
  });
});

async function fill(store: ControlStore): Promise<void> {
  await store.change(async (to) => {
    for (const account of ["acct_a", "acct_b", "acct_c"]) {
      await to.accounts.insert(accountOf(account));
      for (let index = 0; index < 5; index += 1) {
        const application = applicationOf(`app_${account}_${index}`, { accountId: account });
        await to.applications.insert(application);
        for (let number = 0; number < 20; number += 1) {
          const id = `key_${account}_${index}_${number}`;
          await to.keys.insert(keyOf(id, application, { createdAt: number }));
          await to.secrets.insert(secretOf(`of ${id}`, id));
        }
      }
    }
  });
}
