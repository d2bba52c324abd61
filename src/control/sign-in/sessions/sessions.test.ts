import { afterEach, beforeEach, expect, test } from "bun:test";
import { accountOf } from "../../../../test/contracts/control-fixtures.ts";
import {
  refusalOf,
  sessionOf,
  SignInHarness,
  TestBrowser,
  testPassword,
} from "../../../../test/support/sign-in-harness.ts";

let harness: SignInHarness;
let browser: TestBrowser;

beforeEach(async () => {
  harness = new SignInHarness();
  browser = new TestBrowser(harness);
  await harness.addUser("ada");
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

const cookieName = "__Host-sluice_session";

test("the right password starts a session, whose secret is in the cookie", async () => {
  const response = await browser.signIn("Ada@Example.com ");
  expect(response.status).toBe(200);
  expect(response.headers.get("cache-control")).toBe("no-store");
  const { user, expires_at } = await sessionOf(response);
  expect(user).toMatchObject({ id: "ada", email: "ada@example.com", role: "operator" });
  expect(expires_at).toBe(new Date(harness.clock.now() + 12 * 3_600_000).toISOString());
  const shown = await browser.send("/admin/v1/session");
  expect(await sessionOf(shown)).toMatchObject({ csrf_token: browser.csrfToken, expires_at });
});

test("the cookie of an https console is bound to its host and hidden from scripts", async () => {
  const cookie = (await browser.signIn("ada@example.com")).headers.get("set-cookie");
  expect(cookie).toMatch(/^__Host-sluice_session=[0-9A-Za-z]{43}; Path=\/; Max-Age=43200; /);
  expect(cookie).toEndWith("; Secure; HttpOnly; SameSite=Strict");
});

test("over plain http on loopback the cookie is not Secure, which browsers would refuse", async () => {
  await using local = new SignInHarness({ publicUrl: "http://127.0.0.1:8081" });
  await local.addUser("ada");
  const response = await new TestBrowser(local).signIn("ada@example.com");
  const cookie = response.headers.get("set-cookie");
  expect(cookie).toStartWith("sluice_session=");
  expect(cookie).not.toContain("Secure");
});

test("neither the cookie's value nor the password is anywhere in the database", async () => {
  await browser.signIn("ada@example.com");
  const secret = browser.cookies.get(cookieName) ?? "";
  const dump = await harness.connection.use((database) => database.serialize().toString("latin1"));
  expect(secret).toHaveLength(43);
  expect(dump).toContain(new Bun.CryptoHasher("sha256").update(secret).digest("hex"));
  expect(dump).not.toContain(secret);
  expect(dump).not.toContain(testPassword);
});

test("a wrong password, an unknown user and a disabled one get the same answer", async () => {
  await harness.addUser("eve", { disabledAt: 1 });
  await harness.addUser("sam", { passwordHash: undefined });
  const answers = await Promise.all(
    [
      await browser.signIn("ada@example.com", "not the password"),
      await browser.signIn("nobody@example.com"),
      await browser.signIn("eve@example.com"),
      await browser.signIn("sam@example.com"),
    ].map(async (response) => [response.status, await response.json()]),
  );
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(answers[0]?.[0]).toBe(401);
  expect(harness.refusals.map(({ how }) => how)).toEqual(Array<"password">(4).fill("password"));
  expect(JSON.stringify(harness.refusals)).not.toContain("example.com");
});

test("signing out ends the session and removes the cookie", async () => {
  await browser.signIn("ada@example.com");
  const kept = browser.cookies.get(cookieName) ?? "";
  const response = await browser.send("/admin/v1/session", { method: "DELETE" });
  expect(await response.json()).toEqual({ signed_out: true });
  expect(browser.cookies.has(cookieName)).toBe(false);
  browser.cookies.set(cookieName, kept);
  expect((await browser.send("/admin/v1/session")).status).toBe(401);
});

test("each start and end of a session is in the audit, with user and address", async () => {
  await browser.signIn("ada@example.com");
  await browser.send("/admin/v1/session", { method: "DELETE" });
  const { items } = await harness.store.read(({ audit }) => audit.list({}, { limit: 10 }));
  expect(items.map(({ action }) => action)).toEqual(["session.end", "session.start"]);
  for (const { actor, address, subject, requestId } of items) {
    expect(actor).toEqual({ kind: "session", id: "ada", name: "ada@example.com" });
    expect(subject).toEqual({ type: "user", id: "ada" });
    expect(address).toBe("192.0.2.1");
    expect(requestId).toStartWith("req_");
  }
});

/** A browser at an address. */
const strangerAt = (address: string): TestBrowser => new TestBrowser(harness, address);

test("after five wrong passwords from an address the next has to wait, for that user there", async () => {
  for (let tries = 0; tries < 5; tries += 1) {
    expect((await browser.signIn("ada@example.com", "guess number x")).status).toBe(401);
  }
  const refused = await browser.signIn("ada@example.com");
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("30");
  await harness.addUser("bob");
  expect((await browser.signIn("bob@example.com")).status).toBe(200);
  expect((await strangerAt("198.51.100.7").signIn("ada@example.com")).status).toBe(200);
  harness.clock.advance(30_000);
  expect((await browser.signIn("ada@example.com")).status).toBe(200);
});

test("a user is not locked out by tries from other addresses", async () => {
  for (const address of ["198.51.100.7", "203.0.113.9"]) {
    const attacker = strangerAt(address);
    for (let tries = 0; tries < 40; tries += 1) {
      await attacker.signIn("ada@example.com", "guess number x");
    }
  }
  expect((await browser.signIn("ada@example.com")).status).toBe(200);
});

test("one address has five times as many tries for all users", async () => {
  for (let tries = 0; tries < 25; tries += 1) {
    expect((await browser.signIn(`user${tries}@example.com`)).status).toBe(401);
  }
  expect((await browser.signIn("ada@example.com")).status).toBe(429);
  expect((await strangerAt("198.51.100.7").signIn("ada@example.com")).status).toBe(200);
});

test("wrong current passwords of a session count like those of a sign-in", async () => {
  await browser.signIn("ada@example.com");
  const body = { current_password: "wrong", new_password: "eleven green kettles" };
  const statuses: number[] = [];
  for (let tries = 0; tries < 7; tries += 1) {
    statuses.push((await browser.post("/admin/v1/session/password", body)).status);
  }
  expect(statuses).toEqual([...Array<number>(5).fill(401), 429, 429]);
});

test("a new password ends all sessions except the new one", async () => {
  await browser.signIn("ada@example.com");
  const other = new TestBrowser(harness);
  await other.signIn("ada@example.com");
  const changed = await browser.post("/admin/v1/session/password", {
    current_password: testPassword,
    new_password: "eleven green kettles",
  });
  expect(changed.status).toBe(200);
  expect((await browser.send("/admin/v1/session")).status).toBe(200);
  expect((await other.send("/admin/v1/session")).status).toBe(401);
  expect((await other.signIn("ada@example.com")).status).toBe(401);
  expect((await other.signIn("ada@example.com", "eleven green kettles")).status).toBe(200);
});

test("a password is changed only with the current one, and not to a weak one", async () => {
  await browser.signIn("ada@example.com");
  const wrong = await browser.post("/admin/v1/session/password", {
    current_password: "not the password",
    new_password: "eleven green kettles",
  });
  expect(await refusalOf(wrong)).toEqual([401, "wrong_credentials"]);
  const weak = await browser.post("/admin/v1/session/password", {
    current_password: testPassword,
    new_password: "password1234",
  });
  expect(await refusalOf(weak)).toEqual([400, "invalid_value"]);
  expect((await new TestBrowser(harness).signIn("ada@example.com")).status).toBe(200);
});

test("a body with an unknown field, or no body, is refused before any password is hashed", async () => {
  const extra = { email: "ada@example.com", password: testPassword, remember: true };
  const refused = await browser.post("/admin/v1/session", extra);
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { param: "remember" } });
  expect((await browser.post("/admin/v1/session", undefined)).status).toBe(400);
});

test("a user disabled while the password was hashed is refused", async () => {
  const signingIn = browser.signIn("ada@example.com");
  await harness.store.change(async ({ users }) => {
    const user = await users.get("ada");
    if (user !== undefined) await users.update({ ...user, disabledAt: 5 });
  });
  expect((await signingIn).status).toBe(401);
});

test("the ways to sign in are public", async () => {
  const response = await browser.send("/admin/v1/sign-in");
  const expected = { password: true, single_sign_on: false, needs_bootstrap: false };
  expect(await response.json()).toEqual(expected);
});

test("without the database, signing in is unavailable, not refused", async () => {
  await harness.connection.close();
  for (const response of [
    await browser.signIn("ada@example.com"),
    await browser.send("/admin/v1/sign-in"),
  ]) {
    expect(await refusalOf(response)).toEqual([503, "storage_unavailable"]);
  }
});

test("users of a disabled account still sign in and out", async () => {
  await harness.store.change(({ accounts }) =>
    accounts.insert(accountOf("acct_a", { disabledAt: 5 })),
  );
  await harness.addUser("bob", { role: "account_holder", accountId: "acct_a" });
  expect((await browser.signIn("bob@example.com")).status).toBe(200);
  const change = { current_password: testPassword, new_password: "seven green doors sing" };
  expect((await browser.post("/admin/v1/session/password", change)).status).toBe(200);
  const again = new TestBrowser(harness);
  expect((await again.signIn("bob@example.com", change.new_password)).status).toBe(200);
  const ended = await again.send("/admin/v1/session", { method: "DELETE" });
  expect(ended.status).toBe(200);
});
