import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  AdminFixture,
  auditor,
  type FixtureRequest,
  holderOf,
  operator,
  poolOf,
} from "../../test/support/admin-fixture.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Principal } from "../domain/principal.ts";
import { budgetOf } from "../../test/contracts/budget-contract.ts";
import { recordOf } from "../../test/contracts/usage-fixtures.ts";

/** Part of every name of the second account and of no name of the first. */
const mark = "secondparty";

let admin: AdminFixture;
let others: {
  accountId: string;
  applicationId: string;
  keyId: string;
  text: string;
  tokenId: string;
  budgetId: string;
  sessionId: string;
};
let holder: Principal;

beforeEach(async () => {
  admin = new AdminFixture();
  const mine = await admin.application("own");
  await admin.issue(mine.id);
  holder = holderOf(mine.accountId);
  const other = await admin.application(mark, `${mark}-app`);
  const pool = `${mark}-pool`;
  admin.platform = { ...admin.platform, pools: new Map([[pool, poolOf(pool)]]) };
  const sold = { plan: "pro", provisionedUnits: 3, provisionedPool: pool };
  const { key, text } = await admin.issue(other.id, { note: mark, ...sold });
  const startedAt = admin.clock.now() - 1000;
  const { id: applicationId, accountId } = other;
  const owners = { accountId, applicationId, application: mark, keyId: key.id };
  const record = { startedAt, ...owners, code: mark, outcome: "failed" } as const;
  await admin.stores.usage.insert([recordOf(`req_${mark}`, record)]);
  admin.refusals.push({
    id: `refused_${mark}`,
    at: startedAt,
    status: 429,
    code: null,
    explanation: { rule: "tokens_per_minute", summary: mark, keyId: key.id, accountId },
  });
  const ids = { accountId, applicationId, keyId: key.id };
  const budgetId = "bgt_other";
  await admin.stores.control.change(({ budgets }) =>
    budgets.insert(budgetOf(budgetId, { ...ids, note: mark })),
  );
  others = { ...ids, text, budgetId, tokenId: await insertToken(), sessionId: "session_other" };
});
afterEach(() => admin[Symbol.asyncDispose]());

async function insertToken(): Promise<string> {
  const createdAt = admin.clock.now();
  const user = {
    id: "user_other",
    email: `${mark}@example.com`,
    name: mark,
    role: "auditor",
    accountId: undefined,
    passwordHash: `hash of ${mark}`,
    identity: undefined,
    createdAt,
    disabledAt: undefined,
    lastSignInAt: undefined,
    revision: 1,
  } as const;
  const token = {
    id: "tok_other",
    userId: user.id,
    name: mark,
    publicId: "abcdefgh",
    digest: new Uint8Array(32),
    scopes: ["read"],
    createdAt,
    expiresAt: createdAt + 1e9,
    lastUsedAt: undefined,
    revokedAt: undefined,
  } as const;
  await admin.stores.control.change(async (transaction) => {
    await transaction.users.insert(user);
    await transaction.tokens.insert(token);
    const times = { createdAt, lastSeenAt: createdAt, expiresAt: createdAt + 1e9 };
    const session = { id: "session_other", userId: user.id, address: mark, ...times };
    await transaction.sessions.insert(session);
  });
  return token.id;
}

/** Requests that aim at the second account, for each operation. */
function attacks(): Record<string, FixtureRequest[]> {
  const { accountId, applicationId, keyId, budgetId, text, tokenId, sessionId } = others;
  const account = { id: accountId };
  const application = { id: applicationId };
  const keys = [{ id: keyId }, { id: text.slice(0, 15) }];
  const usage = [{ account_id: accountId }, { key_id: keyId }, { application_id: applicationId }];
  const usageQueries = [{}, ...usage].map((query) => ({ query }));
  const revision = { revision: 1 };
  const user = { id: "user_other" };
  return {
    createAccount: [{ body: { name: "mine" } }],
    listAccounts: [{}, { query: { name: mark } }],
    getAccount: [account],
    updateAccount: [{ ...account, body: { ...revision, note: "x" } }],
    deleteAccount: [account],
    eraseAccount: [{ ...account, body: { confirm: mark } }],
    findEndUsers: [{ ...account, body: { names: [mark] } }],
    eraseEndUser: [{ ...account, body: { name: mark } }],
    createApplication: [{ body: { account_id: accountId, environment: "production", name: "x" } }],
    listApplications: [
      {},
      { query: { account_id: accountId } },
      { query: { name: `${mark}-app` } },
    ],
    getApplication: [application],
    updateApplication: [{ ...application, body: { ...revision, note: "x" } }],
    deleteApplication: [application],
    createKey: [{ body: { application_id: applicationId, plan: "standard" } }],
    listKeys: [
      {},
      ...usage.slice(0, 1),
      { application_id: applicationId },
      { provisioned_pool: `${mark}-pool` },
    ].map((query) => ({ query })),
    getKey: keys,
    updateKey: keys.map((key) => ({ ...key, body: { ...revision, note: "x" } })),
    revokeKey: keys,
    rotateKey: keys,
    endSecret: keys.map((key) => ({ ...key, publicId: text.slice(7, 15) })),
    reportLeaks: [{ body: { api_keys: [text] } }],
    createBudget: [{ account_id: accountId }, { key_id: keyId }].map((of) => ({
      body: { ...of, limit_usd: "5", period: "month" },
    })),
    listBudgets: [{}, ...usage].map((query) => ({ query })),
    getBudget: [{ id: budgetId }],
    updateBudget: [{ id: budgetId, body: { ...revision, limit_usd: "9" } }],
    deleteBudget: [{ id: budgetId }],
    listPeppers: [{}],
    listPools: [{}],
    getPool: [{ name: `${mark}-pool` }],
    createUser: [
      { body: { email: "a@example.com", role: "account_holder", account_id: accountId } },
    ],
    listUsers: [{}, { query: { account_id: accountId } }],
    getUser: [user],
    updateUser: [{ ...user, body: { ...revision, name: "x" } }],
    createSignInLink: [{ ...user, body: {} }],
    deleteUser: [user],
    createToken: [{ body: { name: "mine" } }],
    listTokens: [{}, { query: { user_id: "user_other" } }],
    revokeToken: [{ id: tokenId }],
    listSessions: [{}, { query: { user_id: "user_other" } }],
    endSession: [{ id: sessionId }],
    getUsageTotals: usageQueries.map(({ query }) => ({
      query: { ...query, by: "account,application,key,outcome,code" },
    })),
    getUsageSeries: usageQueries.map(({ query }) => ({
      query: { ...query, by: "application,key", code: mark },
    })),
    listCalls: usageQueries,
    exportUsage: usageQueries,
    getStatement: [{ id: accountId, query: { month: "2026-03" } }],
    repriceUsage: [{ body: { since: "1d", dry_run: true } }],
    getCall: [{ id: `req_${mark}` }],
    listRefusals: [{}, ...usage.slice(0, 2)].map((query) => ({ query })),
    getRefusal: [{ id: `refused_${mark}` }],
    explainRequest: [{ id: `refused_${mark}` }, { id: `req_${mark}` }],
    listAudit: [{}, { account_id: accountId }, { subject_id: keyId }].map((query) => ({ query })),
    verifyAudit: [{}],
    listEnvironments: [{}],
    listModels: [{}, { query: { environment: "production" } }],
    listPlans: [{}],
    getChoices: [
      { query: { of: "accounts,applications,keys,pools" } },
      { query: { of: "keys", account_id: accountId } },
    ],
    listPrices: [{}, { query: { version: "1" } }],
    getConfiguration: [{}],
    getStatus: [{}],
    listProcesses: [{}],
    listTargets: [{}],
    getKeyLive: keys,
    getOverview: [{}],
  };
}

/** The outcome as text: the answer, or the status of the refusal. */
async function attempt(operationId: string, request: FixtureRequest): Promise<string> {
  try {
    const { body } = await admin.result(operationId, request);
    return body instanceof Response ? await body.text() : JSON.stringify(body);
  } catch (error) {
    if (error instanceof GatewayError) return `refused with ${error.status}: ${error.message}`;
    throw error;
  }
}

test("every operation has an attack in this file", () => {
  expect(admin.operations.map(({ id }) => id).toSorted()).toEqual(
    Object.keys(attacks()).toSorted(),
  );
});

test("an account holder sees and changes nothing of another account by any operation", async () => {
  const before = await state();
  for (const [operationId, requests] of Object.entries(attacks())) {
    for (const request of requests) {
      const outcome = await attempt(operationId, { ...request, as: holder });
      // The answer may repeat the request; it must contain nothing else of the other account.
      expect(outcome, operationId).not.toContain(mark);
      for (const id of [others.accountId, others.applicationId, others.keyId]) {
        expect(outcome, operationId).not.toContain(id);
      }
      const isOfOne = (request.id ?? request.name) !== undefined;
      if (isOfOne) expect(outcome, operationId).toMatch(/^refused with (403|404)/);
    }
  }
  expect(await state()).toEqual(before);
});

test("the same requests by an operator do find the other account", async () => {
  const reading = ["listKeys", "getKey", "getPool", "listCalls", "getCall", "listAudit"];
  for (const operationId of reading) {
    for (const request of attacks()[operationId] ?? []) {
      expect(await attempt(operationId, request)).toContain(others.accountId);
    }
  }
  expect(await attempt("listPools", {})).toContain(mark);
  expect(await attempt("getRefusal", { id: `refused_${mark}` })).toContain(mark);
  for (const request of attacks()["explainRequest"] ?? []) {
    expect(await attempt("explainRequest", request)).toContain(mark);
  }
  expect(await attempt("exportUsage", { query: { format: "ndjson" } })).toContain(mark);
});

test("no answer distinguishes an entity of another account from a missing one", async () => {
  const nothing = { id: "nothing", name: "nothing" };
  const ofOne = [
    "getAccount",
    "getApplication",
    "getKey",
    "getPool",
    "getCall",
    "getRefusal",
    "getBudget",
  ];
  ofOne.push("explainRequest");
  for (const operationId of ofOne) {
    const [request] = attacks()[operationId] ?? [];
    const hidden = await attempt(operationId, { ...request, as: holder });
    expect(hidden).toBe(await attempt(operationId, { ...nothing, as: holder }));
  }
});

test("an auditor changes nothing by any operation, and an account's auditor sees that account", async () => {
  const before = await state();
  const changing = admin.operations.filter(({ method }) => method !== "GET");
  // An auditor has tokens and sessions of its own.
  const isOwned = (id: string): boolean => id.endsWith("Token") || id === "endSession";
  for (const { id } of changing.filter((operation) => operation.id !== "createToken")) {
    for (const request of attacks()[id] ?? []) {
      const outcome = await attempt(id, { ...request, as: auditor });
      expect(outcome).toStartWith(`refused with ${isOwned(id) ? 404 : 403}`);
    }
  }
  expect(await state()).toEqual(before);
  const bound = { ...auditor, accountId: holder.accountId };
  for (const operationId of ["listKeys", "listPools", "listAudit", "listCalls", "listAccounts"]) {
    for (const request of attacks()[operationId] ?? []) {
      expect(await attempt(operationId, { ...request, as: bound })).not.toContain(mark);
    }
  }
  expect(await attempt("verifyAudit", { as: bound })).toStartWith("refused with 403");
  expect(await attempt("verifyAudit", { as: auditor })).toContain('"is_intact":true');
});

test("a token without the scope to write only reads", async () => {
  const reading: Principal = { ...operator, scopes: ["read"] };
  for (const { id, method } of admin.operations) {
    const [request] = attacks()[id] ?? [];
    const outcome = await attempt(id, { ...request, as: reading });
    if (method !== "GET") expect(outcome).toStartWith("refused with 403");
    else expect(outcome).not.toStartWith("refused");
  }
});

async function state(): Promise<string> {
  const found = await admin.stores.control.read(async (view) => [
    await view.accounts.get(others.accountId),
    await view.applications.get(others.applicationId),
    await view.keys.get(others.keyId),
    await view.secrets.ofKey(others.keyId),
    await view.tokens.get(others.tokenId),
    await view.budgets.get(others.budgetId),
    await view.sessions.get(others.sessionId),
    (await view.users.list({}, { limit: 500 })).items,
    (await view.keys.list({ accountId: others.accountId }, { limit: 500 })).items.length,
    (await view.applications.list({ accountId: others.accountId }, { limit: 500 })).items.length,
    (await view.audit.list({ accountId: others.accountId }, { limit: 500 })).items.length,
  ]);
  return JSON.stringify(found);
}
