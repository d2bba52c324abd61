import { afterEach, beforeEach, expect, test } from "bun:test";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { managementTokenPattern } from "../../domain/keys/api-key.ts";
import type { Principal } from "../../domain/principal.ts";
import type { FixtureRequest } from "../../../test/support/admin-fixture.ts";
import { SignInHarness, TestBrowser } from "../../../test/support/sign-in-harness.ts";
import { gatewayErrorOf } from "../../../test/support/pipeline-fixtures.ts";
import type { TokenView } from "../contract/access.ts";
import { localPrincipal, sessionPrincipal, tokenPrincipal } from "../sign-in/services.ts";
import type { User } from "../../store/entities.ts";

let harness: SignInHarness;
let ada: User;
let bob: User;

beforeEach(async () => {
  harness = new SignInHarness();
  ada = await harness.addUser("ada");
  bob = await harness.addUser("bob", { role: "auditor" });
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

interface Issued {
  readonly token: TokenView;
  readonly secret: string;
}

const issue = async (principal: Principal, body: unknown = { name: "report" }): Promise<Issued> =>
  (await harness.run("createToken", { as: principal, body })) as Issued;
const refusal = (operationId: string, request: FixtureRequest): Promise<GatewayError> =>
  gatewayErrorOf(harness.run(operationId, request));
const listed = async (principal: Principal, query = {}): Promise<readonly string[]> => {
  const page = (await harness.run("listTokens", { as: principal, query })) as { data: TokenView[] };
  return page.data.map(({ user }) => user);
};

async function signedInWith(secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` };
  return (await new TestBrowser(harness).send("/admin/v1/session", { headers })).status;
}

/** The principal of a new token that the user made. */
async function principalOf(user: User, body: object = {}): Promise<Principal> {
  const { token } = await issue(sessionPrincipal(user), { name: "maker", ...body });
  return tokenPrincipal(user, { id: token.id, scopes: [...token.scopes] });
}

test("a token lives 90 days with both scopes unless asked otherwise, and signs its user in", async () => {
  const { token, secret } = await issue(sessionPrincipal(ada));
  expect(secret).toMatch(new RegExp(`^${managementTokenPattern.source}$`));
  expect(secret).toStartWith(`${token.hint}_`);
  expect(token).toMatchObject({ user: "ada@example.com", scopes: ["read", "write"] });
  expect(Date.parse(token.expires_at) - Date.parse(token.created_at)).toBe(90 * 86_400_000);
  expect(await signedInWith(secret)).toBe(200);
  harness.clock.advance(90 * 86_400_000);
  expect(await signedInWith(secret)).toBe(401);
});

test("a token's secret is nowhere in the database", async () => {
  const { secret } = await issue(sessionPrincipal(ada));
  const dump = await harness.connection.use((database) => database.serialize().toString("latin1"));
  expect(dump).toContain(secret.slice(8, 16));
  expect(dump).not.toContain(secret.slice(17));
});

test("a token makes no token with more scopes than its own", async () => {
  const principal = await principalOf(ada, { scopes: ["write"] });
  const wider = { as: principal, body: { name: "x", scopes: ["read", "write"] } };
  expect((await refusal("createToken", wider)).code).toBe("not_permitted");
  expect((await issue(principal)).token.scopes).toEqual(["write"]);
  const reader = { as: await principalOf(ada, { scopes: ["read"] }), body: { name: "x" } };
  expect((await refusal("createToken", reader)).code).toBe("not_permitted");
});

test("the local access names a user, and the token acts as that user", async () => {
  const request = { as: localPrincipal(), body: { name: "x" } };
  expect((await refusal("createToken", request)).param).toBe("user_id");
  const { token, secret } = await issue(localPrincipal(), { name: "x", user_id: "bob" });
  expect([token.user_id, token.user]).toEqual(["bob", "bob@example.com"]);
  expect(await signedInWith(secret)).toBe(200);
});

test("only operators make tokens for others", async () => {
  const request = { as: sessionPrincipal(bob), body: { name: "x", user_id: "ada" } };
  expect((await refusal("createToken", request)).code).toBe("not_found");
  expect((await issue(sessionPrincipal(bob), { name: "x", user_id: "bob" })).token.user_id).toBe(
    "bob",
  );
});

test("a user disabled meanwhile gets no token", async () => {
  await harness.store.change(({ users }) => users.update({ ...bob, disabledAt: 5 }));
  const request = { as: sessionPrincipal(bob), body: { name: "x" } };
  expect((await refusal("createToken", request)).code).toBe("not_found");
});

test("users see their own tokens; operators see all, or those of one user", async () => {
  await issue(sessionPrincipal(ada));
  await issue(sessionPrincipal(bob));
  expect(await listed(sessionPrincipal(bob))).toEqual(["bob@example.com"]);
  expect(await listed(sessionPrincipal(bob), { user_id: "bob" })).toEqual(["bob@example.com"]);
  expect(await listed(sessionPrincipal(ada))).toHaveLength(2);
  expect(await listed(localPrincipal(), { user_id: "bob" })).toEqual(["bob@example.com"]);
  const foreign = { as: sessionPrincipal(bob), query: { user_id: "ada" } };
  expect((await refusal("listTokens", foreign)).code).toBe("not_found");
});

test("a revoked token stops at once, and revoking it again changes nothing", async () => {
  const principal = sessionPrincipal(bob);
  const { token, secret } = await issue(principal);
  const revoked = await harness.run("revokeToken", { as: principal, id: token.id });
  expect(revoked).toMatchObject({ revoked_at: new Date(harness.clock.now()).toISOString() });
  expect(await signedInWith(secret)).toBe(401);
  harness.clock.advance(60_000);
  expect(await harness.run("revokeToken", { as: principal, id: token.id })).toEqual(revoked);
  const { items } = await harness.store.read(({ audit }) => audit.list({}, { limit: 10 }));
  expect(items.map(({ action }) => action)).toEqual(["token.revoke", "token.create"]);
});

test("only operators revoke tokens of others", async () => {
  const { token } = await issue(sessionPrincipal(ada));
  const request = { as: sessionPrincipal(bob), id: token.id };
  expect((await refusal("revokeToken", request)).code).toBe("not_found");
  const own = await issue(sessionPrincipal(bob));
  await harness.run("revokeToken", { as: sessionPrincipal(ada), id: own.token.id });
  expect(await signedInWith(own.secret)).toBe(401);
});

test("tokens made with a token end with it, recursively", async () => {
  const maker = await principalOf(ada);
  const child = await issue(maker, { name: "child", user_id: "bob" });
  const asChild = tokenPrincipal(bob, { id: child.token.id, scopes: [...child.token.scopes] });
  const grandchild = await issue(asChild);
  const other = await issue(sessionPrincipal(bob));
  expect([child.token.made_with, grandchild.token.made_with, other.token.made_with]).toEqual([
    maker.tokenId ?? "",
    child.token.id,
    null,
  ]);
  expect(await signedInWith(grandchild.secret)).toBe(200);
  await harness.run("revokeToken", { as: sessionPrincipal(ada), id: maker.tokenId ?? "" });
  expect(await signedInWith(child.secret)).toBe(401);
  expect(await signedInWith(grandchild.secret)).toBe(401);
  expect(await signedInWith(other.secret)).toBe(200);
  const { items } = await harness.store.read((view) => view.audit.list({}, { limit: 1 }));
  const ended = items[0]?.after?.["ended_with_it"];
  for (const { token } of [child, grandchild]) {
    expect(JSON.stringify(ended)).toContain(token.id);
  }
});

test("no token lives longer than the one that made it", async () => {
  const maker = await principalOf(ada, { expires_in_days: 2 });
  harness.clock.advance(86_400_000);
  const child = await issue(maker, { name: "child", expires_in_days: 365 });
  const short = await issue(maker, { name: "short", expires_in_days: 1 });
  const lives = [child, short].map(
    ({ token }) => Date.parse(token.expires_at) - harness.clock.now(),
  );
  expect(lives).toEqual([86_400_000, 86_400_000]);
  const asChild = tokenPrincipal(ada, { id: child.token.id, scopes: ["read", "write"] });
  expect((await issue(asChild)).token.expires_at).toBe(child.token.expires_at);
  harness.clock.advance(86_400_000);
  expect(await signedInWith(child.secret)).toBe(401);
});

test("a token that ended during the request makes no other", async () => {
  const maker = await principalOf(ada, { expires_in_days: 1 });
  harness.clock.advance(86_400_000);
  const request = { as: maker, body: { name: "late" } };
  expect((await refusal("createToken", request)).code).toBe("not_signed_in");
});

test("tokens made for others with a user's tokens end when the user is disabled", async () => {
  const carl = await harness.addUser("carl");
  const forBob = { name: "child", user_id: "bob" };
  const withToken = await issue(await principalOf(carl), forBob);
  const withSession = await issue(sessionPrincipal(carl), forBob);
  await harness.store.change((to) => to.tokens.revokeOf(carl.id, harness.clock.now()));
  expect(await signedInWith(withToken.secret)).toBe(401);
  expect(await signedInWith(withSession.secret)).toBe(200);
});
