import { afterEach, beforeEach, expect, test } from "bun:test";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import {
  AdminFixture,
  type FixtureRequest,
  holderOf,
} from "../../../test/support/admin-fixture.ts";
import { tokenOf, userOf } from "../../../test/contracts/control-fixtures.ts";
import type { LiveFacts } from "../../domain/live-facts.ts";
import type { ProcessRow } from "../../store/process-row.ts";
import { budgetSchema } from "../contract/budgets.ts";
import { passesByItself } from "../platform/process-status.ts";
import { overviewSchema } from "../contract/live.ts";

let admin: AdminFixture;
beforeEach(() => {
  admin = new AdminFixture();
});
afterEach(() => admin[Symbol.asyncDispose]());

async function needs(request: FixtureRequest = {}) {
  return (await admin.run(overviewSchema, "getOverview", request)).needs;
}

const auditor = {
  kind: "session",
  userId: "user_a",
  name: "a",
  role: "auditor",
  accountId: undefined,
  scopes: ["read"],
} as const;

const facts: LiveFacts = {
  process: 2,
  openCalls: 0,
  loadBound: 9,
  spoolBytes: 0,
  spoolLimitBytes: 1_000,
  targets: [],
  gates: [],
  keys: [],
};

test("nothing needs anybody at first", async () => {
  expect(await needs()).toEqual([]);
});

test("a spool above 80 % is told with its process", async () => {
  for (const [spoolBytes, count] of [
    [800, 0],
    [801, 1],
  ] as const) {
    admin.services.live.facts = async () => [{ ...facts, spoolBytes }];
    const found = await needs();
    expect(found).toHaveLength(count);
    if (count === 0) continue;
    expect(found).toMatchObject([
      { kind: "process_spool_filling", severity: "bad", subject: { id: "2", name: "process 2" } },
    ]);
  }
});

test("tokens that expire are told to their users, and to operators", async () => {
  const expiresAt = admin.clock.now() + 1_000;
  await admin.stores.control.change(async (to) => {
    for (const id of ["user_a", "user_b"]) {
      await to.users.insert(userOf(id, { role: "auditor" }));
      await to.tokens.insert(tokenOf(`of_${id}`, id, { expiresAt, publicId: id }));
    }
  });
  const seenBy = async (role: "operator" | "auditor") => {
    return (await needs({ as: { ...auditor, role } })).map(({ kind, subject }) => [
      kind,
      subject.id,
    ]);
  };
  expect(await seenBy("auditor")).toEqual([["token_expires", "of_user_a"]]);
  expect((await seenBy("operator")).map(([, id]) => id)).toEqual(["of_user_a", "of_user_b"]);
});

test("the overview of an account asks nothing of the gateway", async () => {
  let asked = 0;
  Object.defineProperty(admin, "processRows", {
    get: () => {
      asked += 1;
      return [];
    },
  });
  const bound = { ...auditor, accountId: "acct_a" };
  expect(await needs({ as: bound })).toEqual([]);
  expect(asked).toBe(0);
  await needs();
  expect(asked).toBe(1);
});

test("other machines are named, and not asked", async () => {
  const row = { ...silentRow, silentMs: 0 };
  admin.processRows = [
    { ...row, id: "m@host-a/1-1", name: "host-a" },
    { ...row, id: "m@host-b/1-2", name: "host-b", notReady: "starting" },
    { ...silentRow, id: "m@host-c/1-3", name: "host-c" },
  ];
  const overview = await admin.run(overviewSchema, "getOverview");
  expect(overview).toMatchObject({ machine: "host-a", other_machines: ["host-b"] });
  expect(overview.needs.map(({ kind, what }) => [kind, what])).toEqual([
    ["process_not_ready", "starting"],
    ["process_not_ready", "It gives no sign for 20 s."],
  ]);
});

test("a gateway that serves and lacks something is told, unless that passes by itself", async () => {
  const lost = "limits.store does not answer; limits are not shared";
  const passing = `limits.store is new or was lost, ${passesByItself}`;
  const row = { ...silentRow, silentMs: 0, name: "host-a" };
  admin.processRows = [
    { ...row, id: "m@host-a/1-1", degraded: lost },
    { ...row, id: "m@host-a/2-2", number: 2, degraded: passing },
    { ...row, id: "m@host-a/3-3", number: 3, degraded: lost, silentMs: 20_000 },
  ];
  expect((await needs()).map(({ kind, severity, what }) => [kind, severity, what])).toEqual([
    ["process_not_ready", "bad", "It gives no sign for 20 s."],
    ["process_degraded", "bad", `It is degraded: ${lost}. \`sluice doctor\` tells why.`],
  ]);
});

const silentRow: ProcessRow = {
  id: "",
  name: "",
  number: 1,
  version: "1.2.3",
  startedAt: 0,
  configuredAt: 0,
  configDigest: "abc",
  limitsDigest: "5e4f",
  pepperMarks: "new",
  keysEpoch: 7,
  chargesAs: undefined,
  ingest: "none",
  adminUrl: "",
  notReady: undefined,
  degraded: undefined,
  silentMs: 20_000,
};

test("a budget of which more than 80 % is spent is told to those who may see it", async () => {
  const application = await admin.application("first");
  const { accountId, id: applicationId } = application;
  const { id } = await admin.run(budgetSchema, "createBudget", {
    body: { account_id: accountId, limit_usd: "5", period: "month" },
  });
  const spend = (name: string, costNano: number) =>
    admin.stores.usage.insert([
      recordOf(name, { accountId, applicationId, startedAt: admin.clock.now(), costNano }),
    ]);
  await spend("a", 4_000_000_000);
  expect(await needs()).toEqual([]);
  await spend("b", 1);
  const told = {
    kind: "budget_near_limit",
    severity: "warn",
    subject: { id, name: "account first" },
    what: "80 % of 5.00 USD is spent. Calls beyond it are refused. Set by an operator.",
  };
  expect(await needs()).toMatchObject([told]);
  expect(await needs({ as: holderOf(accountId) })).toMatchObject([told]);
  expect(await needs({ as: holderOf("acct_other") })).toEqual([]);
  await spend("c", 5_850_000_000);
  expect(await needs()).toMatchObject([
    { what: "All of 5.00 USD is spent, 197 %. Calls beyond it are refused. Set by an operator." },
  ]);
});
