import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import type { SsoSettings } from "../../../config/config.ts";
import { Secret } from "../../../domain/keys/secret.ts";
import { accountOf } from "../../../../test/contracts/control-fixtures.ts";
import {
  IdentityProvider,
  testClient,
  type ProviderUser,
} from "../../../../test/support/identity-provider.ts";
import {
  refusalOf,
  sessionOf,
  SignInHarness,
  TestBrowser,
} from "../../../../test/support/sign-in-harness.ts";

const publicUrl = "http://127.0.0.1:8081";
const redirectUrl = `${publicUrl}/admin/v1/sso/callback`;
const start = "/admin/v1/sso/start";

let provider: IdentityProvider;
let harness: SignInHarness;
let browser: TestBrowser;

beforeAll(async () => {
  provider = await IdentityProvider.start({ redirectUrl, putsClaimsIntoIdToken: true });
});

afterAll(async () => {
  await provider[Symbol.asyncDispose]();
});

beforeEach(async () => {
  provider.tamper = undefined;
  harness = new SignInHarness({ publicUrl, sso: settingsFor(provider.issuer) });
  browser = new TestBrowser(harness);
  await harness.store.change(({ accounts }) =>
    accounts.insert(accountOf("acct_a", { name: "Example Ltd" })),
  );
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

function settingsFor(issuer: string): SsoSettings {
  return {
    issuer,
    clientId: testClient.id,
    clientSecret: new Secret(testClient.secret),
    scopes: ["openid", "profile", "email"],
    roleClaim: "groups",
    roles: { admins: "operator", customers: "account_holder", readers: "auditor" },
    accountClaim: "account",
    auditorsSeeAll: false,
  };
}

const ada: ProviderUser = {
  sub: "ada-at-the-provider",
  email: "ada@example.com",
  email_verified: true,
  name: "Ada",
  groups: ["staff", "admins"],
};

/** Signs in at the provider and returns path and query of the callback. */
async function comeBack(user: ProviderUser, from = browser, by = provider): Promise<string> {
  provider.user = user;
  const started = await from.send(start);
  const { pathname, search } = await by.visit(started.headers.get("location") ?? "");
  return pathname + search;
}

async function signOn(user: ProviderUser, from = browser): Promise<Response> {
  return from.send(await comeBack(user, from));
}

async function userCalled(email: string) {
  const { items } = await harness.store.read(({ users }) => users.list({ email }, { limit: 1 }));
  return items[0];
}

test("a user of the provider is signed in and redirected to the console", async () => {
  const response = await signOn(ada);
  expect([response.status, response.headers.get("location")]).toEqual([302, "/"]);
  const shown = await sessionOf(await browser.send("/admin/v1/session"));
  expect(shown.user).toMatchObject({ email: "ada@example.com", name: "Ada", role: "operator" });
  expect(shown.user).toMatchObject({ has_password: false, has_single_sign_on: true });
});

test("the redirect to the provider has state, nonce and a challenge, and no secret", async () => {
  const started = await browser.send(start);
  const url = new URL(started.headers.get("location") ?? "");
  const { searchParams } = url;
  expect(searchParams.get("code_challenge_method")).toBe("S256");
  expect(searchParams.get("redirect_uri")).toBe(redirectUrl);
  for (const name of ["state", "nonce", "code_challenge"]) {
    expect(searchParams.get(name)).toMatch(/^[\w-]{43}$/);
  }
  expect(url.href).not.toContain(encodeURIComponent(testClient.secret));
  const cookie = started.headers.get("set-cookie");
  expect(cookie).toEndWith("Path=/; Max-Age=600; HttpOnly; SameSite=Lax");
  expect(url.href).not.toContain(browser.cookies.get("sluice_sign_on") ?? "?");
});

test("claims that are only in the user info are found", async () => {
  await using shy = await IdentityProvider.start({ redirectUrl });
  await using there = new SignInHarness({ publicUrl, sso: settingsFor(shy.issuer) });
  const page = new TestBrowser(there);
  shy.user = ada;
  const response = await page.send(await comeBack(ada, page, shy));
  expect(response.status).toBe(302);
});

test("the next sign-in finds the same user and updates the role", async () => {
  await signOn(ada);
  const first = await userCalled("ada@example.com");
  const other = new TestBrowser(harness);
  await signOn({ ...ada, sub: "bob", email: "bob@example.com" }, other);
  const old = browser.cookies.get("sluice_session") ?? "";
  const again = new TestBrowser(harness);
  await signOn({ ...ada, groups: "customers", account: "Example Ltd" }, again);
  const user = await userCalled("ada@example.com");
  expect(user).toMatchObject({ id: first?.id, role: "account_holder", accountId: "acct_a" });
  // The operator's session ended with the role.
  browser.cookies.set("sluice_session", old);
  expect((await browser.send("/admin/v1/session")).status).toBe(401);
});

test("of several roles the most powerful one is given", async () => {
  await signOn({ ...ada, groups: ["readers", "customers"], account: "acct_a" });
  expect(await userCalled("ada@example.com")).toMatchObject({ role: "account_holder" });
});

test("a verified email address binds an existing user, an unverified one does not", async () => {
  const known = await harness.addUser("known", { email: "ada@example.com", role: "operator" });
  const unverified = await signOn({ ...ada, email_verified: false });
  expect(await refusalOf(unverified)).toEqual([403, "not_permitted"]);
  const silent = await signOn({ ...ada, email_verified: undefined });
  expect(silent.status).toBe(403);
  expect((await userCalled("ada@example.com"))?.identity).toBeUndefined();
  expect((await signOn(ada)).status).toBe(302);
  const bound = await userCalled("ada@example.com");
  expect(bound).toMatchObject({ id: known.id, identity: { subject: ada.sub } });
});

test("another identity with the same email address does not become that user", async () => {
  await signOn(ada);
  const other = new TestBrowser(harness);
  const refused = await signOn({ ...ada, sub: "somebody else" }, other);
  expect(await refusalOf(refused)).toEqual([403, "not_permitted"]);
});

test("without a role the sign-in is refused, and no user is created", async () => {
  for (const groups of [undefined, [], ["staff"], "constructor", 7]) {
    expect(await refusalOf(await signOn({ ...ada, groups }))).toEqual([403, "not_permitted"]);
  }
  expect(await userCalled("ada@example.com")).toBeUndefined();
  expect(harness.refusals.at(-1)).toMatchObject({ how: "single_sign_on" });
});

test("an account holder needs exactly one account that exists", async () => {
  for (const account of [undefined, "Nobody Ltd", ["acct_a", "Example Ltd"]]) {
    const refused = await signOn({ ...ada, groups: ["customers"], account });
    expect(await refusalOf(refused)).toEqual([403, "not_permitted"]);
  }
  expect((await signOn({ ...ada, groups: ["customers"], account: "acct_a" })).status).toBe(302);
});

test("an auditor of an account that does not exist does not see everything", async () => {
  const readers = { ...ada, groups: ["readers"] };
  expect((await signOn({ ...readers, account: "Nobody Ltd" })).status).toBe(403);
  expect((await signOn({ ...readers, account: "Example Ltd" })).status).toBe(302);
  expect(await userCalled("ada@example.com")).toMatchObject({ accountId: "acct_a" });
});

test("an auditor without an account is refused unless the configuration allows it", async () => {
  const readers = { ...ada, groups: ["readers"] };
  expect(await refusalOf(await signOn(readers))).toEqual([403, "not_permitted"]);
  expect(await userCalled("ada@example.com")).toBeUndefined();
  const sso = { ...settingsFor(provider.issuer), auditorsSeeAll: true };
  await using there = new SignInHarness({ publicUrl, sso });
  const page = new TestBrowser(there);
  const response = await page.send(await comeBack(readers, page));
  expect(response.status).toBe(302);
  const shown = await sessionOf(await page.send("/admin/v1/session"));
  expect(shown.user).toMatchObject({ role: "auditor", account_id: null });
});

test("an account claim of another shape gives no account, and never all of them", async () => {
  const sso = { ...settingsFor(provider.issuer), auditorsSeeAll: true };
  await using there = new SignInHarness({ publicUrl, sso });
  const readers = { ...ada, groups: ["readers"] };
  for (const account of [7, true, "", [], [7], ["acct_a", 7], { id: "acct_a" }, [["acct_a"]]]) {
    const page = new TestBrowser(there);
    const refused = await page.send(await comeBack({ ...readers, account }, page));
    expect(await refusalOf(refused)).toEqual([403, "not_permitted"]);
  }
});

test("an account that only the user info names binds its auditor", async () => {
  await using shy = await IdentityProvider.start({ redirectUrl, putsClaimsIntoIdToken: true });
  let isAsked = false;
  shy.tamper = (path, body) => {
    if (path !== "/me") return body;
    isAsked = true;
    return JSON.stringify({ ...(JSON.parse(body) as object), account: "acct_a" });
  };
  const sso = { ...settingsFor(shy.issuer), auditorsSeeAll: true };
  await using there = new SignInHarness({ publicUrl, sso });
  await there.store.change(({ accounts }) => accounts.insert(accountOf("acct_a")));
  shy.user = { ...ada, groups: ["readers"] };
  const page = new TestBrowser(there);
  await page.send(await comeBack(ada, page, shy));
  const shown = await sessionOf(await page.send("/admin/v1/session"));
  expect(shown.user).toMatchObject({ role: "auditor", account_id: "acct_a" });
  expect(isAsked).toBe(true);
});

test("a disabled user is refused", async () => {
  await harness.addUser("other");
  await signOn(ada);
  await harness.store.change(async ({ users }) => {
    const { items } = await users.list({ email: "ada@example.com" }, { limit: 1 });
    if (items[0] !== undefined) await users.update({ ...items[0], disabledAt: 5 });
  });
  expect(await refusalOf(await signOn(ada))).toEqual([403, "not_permitted"]);
});

test("a claim does not change the role of the last operator", async () => {
  await signOn(ada);
  const refused = await signOn({ ...ada, groups: ["readers"], account: "acct_a" });
  expect(await refusalOf(refused)).toEqual([409, "wrong_state"]);
  expect(await userCalled("ada@example.com")).toMatchObject({ role: "operator" });
});

test("an answer with another state is refused, and the sign-on can still be completed", async () => {
  const callback = await comeBack(ada);
  const other = callback.replace(/state=[^&]*/, `state=${"x".repeat(43)}`);
  expect(await refusalOf(await browser.send(other))).toEqual([401, "wrong_credentials"]);
  expect((await browser.send(callback)).status).toBe(302);
});

test("an answer in another browser is refused", async () => {
  const callback = await comeBack(ada);
  const victim = new TestBrowser(harness);
  expect(await refusalOf(await victim.send(callback))).toEqual([401, "wrong_credentials"]);
  await victim.send(start);
  expect((await victim.send(callback)).status).toBe(401);
});

test("an answer works once, and the provider is not asked again", async () => {
  const callback = await comeBack(ada);
  let asked = 0;
  provider.tamper = (path, body) => {
    if (path === "/token") asked += 1;
    return body;
  };
  expect((await browser.send(callback)).status).toBe(302);
  expect(await refusalOf(await browser.send(callback))).toEqual([401, "wrong_credentials"]);
  expect(asked).toBe(1);
});

test("a used code is refused", async () => {
  const used = new URLSearchParams((await comeBack(ada)).split("?")[1]);
  await browser.send(`/admin/v1/sso/callback?${used.toString()}`);
  const fresh = new URLSearchParams((await comeBack(ada)).split("?")[1]);
  fresh.set("code", used.get("code") ?? "");
  const refused = await browser.send(`/admin/v1/sso/callback?${fresh.toString()}`);
  expect(await refusalOf(refused)).toEqual([401, "wrong_credentials"]);
});

test("a sign-on expires after ten minutes", async () => {
  const callback = await comeBack(ada);
  harness.clock.advance(10 * 60_000);
  expect((await browser.send(callback)).status).toBe(401);
});

test("an answer that names another issuer is refused", async () => {
  const callback = await comeBack(ada);
  const other = callback.replace(/iss=[^&]*/, "iss=https%3A%2F%2Fevil.example");
  expect(other).not.toBe(callback);
  expect(await refusalOf(await browser.send(other))).toEqual([401, "wrong_credentials"]);
});

/** Changes the claims of the ID token in the answer of the token endpoint; the signature stays. */
function changeIdToken(change: (claims: Record<string, unknown>) => Record<string, unknown>): void {
  provider.tamper = (path, body) => {
    if (path !== "/token") return body;
    const answer = JSON.parse(body) as { id_token: string };
    const [head, payload = "", signature] = answer.id_token.split(".");
    const text = Buffer.from(payload, "base64url").toString();
    const claims = JSON.parse(text) as Record<string, unknown>;
    const changed = Buffer.from(JSON.stringify(change(claims))).toString("base64url");
    return JSON.stringify({ ...answer, id_token: [head, changed, signature].join(".") });
  };
}

test("an ID token with another nonce, issuer, audience or any other change is refused", async () => {
  for (const change of [
    { nonce: "another" },
    { iss: "https://evil.example" },
    { aud: "another client" },
    { exp: 1 },
    { groups: ["admins"] },
  ]) {
    changeIdToken((claims) => ({ ...claims, ...change }));
    const refused = await signOn({ ...ada, groups: ["readers"] });
    expect(await refusalOf(refused)).toEqual([401, "wrong_credentials"]);
  }
  expect(await userCalled("ada@example.com")).toBeUndefined();
});

test("a refusal of the provider is reported without its text", async () => {
  await browser.send(start);
  const started = await browser.send(start);
  const state = new URL(started.headers.get("location") ?? "").searchParams.get("state") ?? "";
  const query = new URLSearchParams({
    error: "access_denied",
    error_description: "<b>words</b>",
    state,
    iss: provider.issuer,
  });
  const refused = await browser.send(`/admin/v1/sso/callback?${query.toString()}`);
  const text = await refused.text();
  expect(refused.status).toBe(401);
  expect(text).toContain("access_denied");
  expect(text).not.toContain("words");
});

test("an unavailable provider is reported as such, and works again afterwards", async () => {
  const port = await freePort();
  const sso = settingsFor(`http://127.0.0.1:${port}`);
  await using there = new SignInHarness({ publicUrl, sso });
  const page = new TestBrowser(there);
  for (let tries = 0; tries < 2; tries += 1) {
    const refused = await page.send(start);
    expect(refused.headers.has("retry-after")).toBe(true);
    expect(await refusalOf(refused)).toEqual([503, "single_sign_on_unavailable"]);
  }
  await using late = await IdentityProvider.start({
    redirectUrl,
    port,
    putsClaimsIntoIdToken: true,
  });
  late.user = ada;
  expect((await page.send(await comeBack(ada, page, late))).status).toBe(302);
});

test("a provider with another issuer in its document is refused", async () => {
  provider.tamper = (path, body) =>
    path.startsWith("/.well-known")
      ? body.replaceAll(provider.issuer, "https://evil.example")
      : body;
  expect(await refusalOf(await browser.send(start))).toEqual([503, "single_sign_on_unavailable"]);
});

test("a provider that refuses the client's secret is an error of settings", async () => {
  const sso = { ...settingsFor(provider.issuer), clientSecret: new Secret("another secret") };
  await using there = new SignInHarness({ publicUrl, sso });
  const page = new TestBrowser(there);
  const refused = await page.send(await comeBack(ada, page));
  expect(await refusalOf(refused)).toEqual([503, "single_sign_on_unavailable"]);
});

test("a remote provider without https is not asked", async () => {
  const sso = settingsFor("http://provider.example");
  await using there = new SignInHarness({ publicUrl, sso });
  const refused = await new TestBrowser(there).send(start);
  expect(await refusalOf(refused)).toEqual([503, "single_sign_on_unavailable"]);
});

test("without single sign-on in the configuration its routes are 404", async () => {
  await using there = new SignInHarness({ publicUrl });
  const page = new TestBrowser(there);
  expect((await page.send(start)).status).toBe(404);
  expect((await page.send("/admin/v1/sso/callback?code=x&state=y")).status).toBe(404);
});

async function freePort(): Promise<number> {
  const server = await IdentityProvider.start({ redirectUrl });
  await server[Symbol.asyncDispose]();
  return Number(new URL(server.issuer).port);
}
