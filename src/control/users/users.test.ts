import { afterEach, beforeEach, expect, test } from "bun:test";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { accountOf, tokenOf } from "../../../test/contracts/control-fixtures.ts";
import type { FixtureRequest } from "../../../test/support/admin-fixture.ts";
import { SignInHarness, TestBrowser, testPassword } from "../../../test/support/sign-in-harness.ts";
import { gatewayErrorOf } from "../../../test/support/pipeline-fixtures.ts";
import type { UserView } from "../contract/access.ts";
import { sessionPrincipal } from "../sign-in/services.ts";

let harness: SignInHarness;

beforeEach(async () => {
  harness = new SignInHarness();
  await harness.addUser("ada");
  await harness.store.change(({ accounts }) => accounts.insert(accountOf("acct_a")));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

const user = async (operationId: string, request?: FixtureRequest): Promise<UserView> =>
  (await harness.run(operationId, request)) as UserView;
const refusal = async (operationId: string, request?: FixtureRequest): Promise<GatewayError> =>
  gatewayErrorOf(harness.run(operationId, request));

test("a new user can sign in", async () => {
  const body = { email: " Bob@Example.com", name: "Bob", role: "auditor", password: testPassword };
  const made = await user("createUser", { body });
  expect(made).toMatchObject({ email: "bob@example.com", role: "auditor", has_password: true });
  expect(JSON.stringify(made)).not.toContain("argon2");
  expect((await new TestBrowser(harness).signIn("bob@example.com")).status).toBe(200);
});

test("an email address is unique, ignoring case", async () => {
  const error = await refusal("createUser", {
    body: { email: "ADA@example.com", role: "auditor" },
  });
  expect([error.code, error.param]).toEqual(["already_exists", "email"]);
});

test("role and account must fit together", async () => {
  for (const body of [
    { role: "account_holder" },
    { role: "account_holder", account_id: null },
    { role: "account_holder", account_id: "acct_none" },
    { role: "auditor", account_id: "acct_none" },
    { role: "operator", account_id: "acct_a" },
  ]) {
    const error = await refusal("createUser", { body: { email: "bob@example.com", ...body } });
    expect([error.status, error.param]).toEqual([400, "account_id"]);
  }
});

test("bad passwords, addresses and unknown fields are refused with their field", async () => {
  for (const [fields, param] of [
    [{ password: "password1234" }, "password"],
    [{ password: "bob@example.com" }, "password"],
    [{ email: "bob" }, "email"],
    [{ role: "root" }, "role"],
    [{ passwordHash: "x" }, "passwordHash"],
  ] as const) {
    const body = { email: "bob@example.com", role: "auditor", ...fields };
    expect((await refusal("createUser", { body })).param).toBe(param);
  }
});

test("a change names the revision it was made from", async () => {
  const body = { revision: 1, name: "Countess" };
  expect(await user("updateUser", { id: "ada", body })).toMatchObject({
    name: "Countess",
    revision: 2,
  });
  expect((await refusal("updateUser", { id: "ada", body })).code).toBe("revision_conflict");
});

async function isIn(browser: TestBrowser): Promise<boolean> {
  return (await browser.send("/admin/v1/session")).ok;
}

test("a new role, account or password, and disabling, end sessions; a new name does not", async () => {
  await harness.addUser("bob", { role: "auditor" });
  const password = "eleven green kettles";
  for (const [change, stays] of [
    [{ name: "Bob" }, true],
    [{ role: "account_holder", account_id: "acct_a" }, false],
    [{ role: "auditor" }, false],
    [{ account_id: null }, false],
    [{ disabled: true }, false],
    [{ disabled: false }, false],
    [{ password }, false],
  ] as const) {
    const browser = new TestBrowser(harness, "198.51.100.7");
    await browser.signIn("bob@example.com");
    const { revision } = await user("getUser", { id: "bob" });
    await user("updateUser", { id: "bob", body: { revision, ...change } });
    expect(await isIn(browser)).toBe(stays);
    harness.clock.advance(60_000);
  }
  expect((await new TestBrowser(harness).signIn("bob@example.com", password)).status).toBe(200);
});

test("disabling a user revokes its tokens for good", async () => {
  await harness.addUser("bob", { role: "auditor" });
  await harness.store.change(({ tokens }) => tokens.insert(tokenOf("tok_1", "bob")));
  await user("updateUser", { id: "bob", body: { revision: 1, disabled: true } });
  await user("updateUser", { id: "bob", body: { revision: 2, disabled: false } });
  const token = await harness.store.read(({ tokens }) => tokens.get("tok_1"));
  expect(token?.revokedAt).toBe(harness.clock.now());
});

test("the last enabled operator can be neither removed, demoted nor disabled", async () => {
  await harness.addUser("old", { disabledAt: 5 });
  await harness.addUser("reader", { role: "auditor" });
  expect((await refusal("deleteUser", { id: "ada" })).code).toBe("wrong_state");
  for (const change of [{ disabled: true }, { role: "auditor" }]) {
    const error = await refusal("updateUser", { id: "ada", body: { revision: 1, ...change } });
    expect(error.code).toBe("wrong_state");
  }
  await user("updateUser", { id: "reader", body: { revision: 1, role: "operator" } });
  await harness.run("deleteUser", { id: "ada" });
  expect((await refusal("getUser", { id: "ada" })).code).toBe("not_found");
});

test("a removed user's session is removed too", async () => {
  await harness.addUser("bob");
  const browser = new TestBrowser(harness);
  await browser.signIn("bob@example.com");
  expect(await harness.run("deleteUser", { id: "bob" })).toEqual({ id: "bob", deleted: true });
  expect(await isIn(browser)).toBe(false);
});

test("an auditor of one account sees only its users, and changes none", async () => {
  await harness.addUser("holder", { role: "account_holder", accountId: "acct_a" });
  const auditor = await harness.addUser("reader", { role: "auditor", accountId: "acct_a" });
  const principal = sessionPrincipal(auditor);
  const page = (await harness.run("listUsers", { as: principal })) as { data: UserView[] };
  expect(page.data.map(({ id }) => id).toSorted()).toEqual(["holder", "reader"]);
  expect((await refusal("getUser", { id: "ada", as: principal })).code).toBe("not_found");
  const elsewhere = { as: principal, query: { account_id: "acct_b" } };
  expect(await harness.run("listUsers", elsewhere)).toEqual({ data: [], next_cursor: null });
  const change = { id: "holder", as: principal, body: { revision: 1, disabled: true } };
  expect((await refusal("updateUser", change)).code).toBe("not_permitted");
});

test("users are found by email, role and page by page", async () => {
  await harness.addUser("bob", { role: "auditor" });
  const list = async (query: Record<string, string>) =>
    (await harness.run("listUsers", { query })) as { data: UserView[]; next_cursor: string | null };
  expect((await list({ email: "BOB@example.com" })).data.map(({ id }) => id)).toEqual(["bob"]);
  expect((await list({ role: "operator" })).data.map(({ id }) => id)).toEqual(["ada"]);
  const first = await list({ limit: "1" });
  const second = await list({ limit: "1", cursor: first.next_cursor ?? "" });
  expect([...first.data, ...second.data].map(({ id }) => id).toSorted()).toEqual(["ada", "bob"]);
  expect(second.next_cursor).toBeNull();
});

test("the audit has what changed, and of a password only that it is new", async () => {
  const body = { revision: 1, name: "Countess", password: "eleven green kettles" };
  await user("updateUser", { id: "ada", body });
  const { items } = await harness.store.read(({ audit }) => audit.list({}, { limit: 10 }));
  expect(items[0]).toMatchObject({
    action: "user.update",
    actor: { kind: "local", name: "local" },
    before: { name: "User ada", has_new_password: null },
    after: { name: "Countess", has_new_password: true },
  });
  expect(JSON.stringify(items)).not.toContain("argon2");
  expect(JSON.stringify(items)).not.toContain("kettles");
});
