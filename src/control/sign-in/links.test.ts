import { afterEach, beforeEach, expect, test } from "bun:test";
import { auditor, holderOf } from "../../../test/support/admin-fixture.ts";
import {
  refusalOf,
  sessionOf,
  SignInHarness,
  TestBrowser,
  testPassword,
} from "../../../test/support/sign-in-harness.ts";
import { bySystem, changeAs } from "../operation/change.ts";
import { insertLink } from "./links.ts";

let harness: SignInHarness;
let browser: TestBrowser;

beforeEach(async () => {
  harness = new SignInHarness();
  browser = new TestBrowser(harness);
  await harness.addUser("root");
  await harness.addUser("ada", { passwordHash: undefined });
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

const path = "/admin/v1/session/link";
const password = "eleven green kettles";

async function newUrl(id = "ada", body: object = {}): Promise<string> {
  const answer = await harness.run("createSignInLink", { id, body });
  return (answer as { url: string }).url;
}

async function newToken(id = "ada", body: object = {}): Promise<string> {
  return (await newUrl(id, body)).split("=")[1] ?? "";
}

/** A link as the demo prints it. */
async function demoToken(id: string): Promise<string> {
  const { url } = await changeAs(harness, bySystem, async (made) => {
    const user = await made.transaction.users.get(id);
    if (user === undefined) throw new Error(`there is no user ${id}`);
    const link = { user, purpose: "sign-in", lifetimeMs: 600_000 } as const;
    return insertLink(made, link, { random: harness.random, publicUrl: () => harness.publicUrl });
  });
  return url.split("=")[1] ?? "";
}

test("an invited user chooses a password with the link, and is signed in", async () => {
  const url = await newUrl();
  expect(url).toMatch(/^https:\/\/console\.example\.com\/#new-password=[0-9A-Za-z]{43}$/);
  const response = await browser.post(path, { token: url.split("=")[1], password });
  expect(response.status).toBe(200);
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(await sessionOf(response)).toMatchObject({ user: { id: "ada", has_password: true } });
  expect((await browser.send("/admin/v1/session")).status).toBe(200);
  expect((await new TestBrowser(harness).signIn("ada@example.com", password)).status).toBe(200);
});

test("a link works once", async () => {
  const token = await newToken();
  expect((await browser.post(path, { token, password })).status).toBe(200);
  const again = await new TestBrowser(harness).post(path, { token, password });
  expect(await refusalOf(again)).toEqual([401, "wrong_credentials"]);
  expect(harness.refusals.map(({ how }) => how)).toEqual(["link"]);
});

test("of ten requests with one link at once, one is signed in", async () => {
  for (const [token, body] of [
    [await newToken(), { password }],
    [await demoToken("root"), {}],
  ] as const) {
    const responses = await Promise.all(
      Array.from({ length: 10 }, () =>
        new TestBrowser(harness, "127.0.0.1").post(path, { token, ...body }),
      ),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 401)).toHaveLength(9);
  }
});

test("a link ends after its time, with its user, and when another one is made", async () => {
  const expired = await newToken("ada", { expires_in_hours: 1 });
  harness.clock.advance(3_600_000);
  const replaced = await newToken();
  const disabled = await newToken();
  await harness.run("updateUser", { id: "ada", body: { revision: 1, disabled: true } });
  await harness.run("updateUser", { id: "ada", body: { revision: 2, disabled: false } });
  await harness.addUser("eve");
  const removed = await newToken("eve");
  await harness.run("deleteUser", { id: "eve" });
  const answers = [];
  for (const token of [expired, replaced, disabled, removed, "unknown"]) {
    const response = await browser.post(path, { token, password });
    expect(response.status).toBe(401);
    answers.push(await response.text());
  }
  expect(new Set(answers).size).toBe(1);
});

test("a user disabled while the password was hashed is not signed in", async () => {
  const signingIn = browser.post(path, { token: await newToken(), password });
  await harness.store.change(async ({ users }) => {
    const user = await users.get("ada");
    if (user !== undefined) await users.update({ ...user, disabledAt: 5 });
  });
  expect((await signingIn).status).toBe(401);
});

test("no link is made for a disabled user", async () => {
  await harness.run("updateUser", { id: "ada", body: { revision: 1, disabled: true } });
  expect(newUrl()).rejects.toThrow("The user is disabled");
});

test("a missing or weak password leaves the link valid", async () => {
  const token = await newToken();
  const missing = await browser.post(path, { token });
  expect(await refusalOf(missing)).toEqual([400, "missing_required_parameter"]);
  const weak = await browser.post(path, { token, password: "password1234" });
  expect(await refusalOf(weak)).toEqual([400, "invalid_value"]);
  expect((await browser.post(path, { token, password })).status).toBe(200);
});

test("a new password by a link ends the user's sessions", async () => {
  await browser.signIn("root@example.com");
  const token = await newToken("root");
  expect((await browser.send("/admin/v1/session")).status).toBe(200);
  expect((await new TestBrowser(harness).post(path, { token, password })).status).toBe(200);
  expect((await browser.send("/admin/v1/session")).status).toBe(401);
  expect((await browser.signIn("root@example.com", testPassword)).status).toBe(401);
});

test("who forgot a password waits no more once a link has set a new one", async () => {
  let status = 401;
  while (status === 401) {
    status = (await browser.signIn("root@example.com", "not this one either")).status;
  }
  expect(status).toBe(429);
  const token = await newToken("root");
  expect((await browser.post(path, { token, password })).status).toBe(200);
  expect((await browser.signIn("root@example.com", password)).status).toBe(200);
});

test("a link of the demo signs in without a password, on the gateway's machine alone", async () => {
  const token = await demoToken("root");
  const elsewhere = await browser.post(path, { token });
  expect(await refusalOf(elsewhere)).toEqual([401, "wrong_credentials"]);
  const local = new TestBrowser(harness, "127.0.0.1");
  expect((await local.post(path, { token, password })).status).toBe(400);
  const response = await local.post(path, { token });
  expect(await sessionOf(response)).toMatchObject({ user: { id: "root", role: "operator" } });
});

test("guesses are limited by address", async () => {
  for (let tries = 0; tries < 25; tries += 1) {
    expect((await browser.post(path, { token: "guess" })).status).toBe(401);
  }
  expect((await browser.post(path, { token: "guess" })).status).toBe(429);
});

test("the database and the audit have no token, and the audit has every step", async () => {
  const token = await newToken();
  await browser.post(path, { token, password });
  const unused = await newToken("root");
  const dump = await harness.connection.use((database) => database.serialize().toString("latin1"));
  for (const secret of [token, unused, password]) expect(dump).not.toContain(secret);
  const { items } = await harness.store.read(({ audit }) => audit.list({}, { limit: 10 }));
  const ofAda = items.filter(({ subject }) => subject.id === "ada");
  expect(ofAda.map(({ action }) => action)).toEqual(["session.start", "user.update", "user.link"]);
  expect(ofAda[0]).toMatchObject({ actor: { id: "ada" }, address: "192.0.2.1" });
  expect(ofAda[0]?.after).toMatchObject({ how: "link" });
});

test("a page of another site cannot use a link", async () => {
  const token = await newToken();
  const refused = await browser.post(path, { token, password }, { origin: "https://evil.example" });
  expect(await refusalOf(refused)).toEqual([403, "wrong_origin"]);
});

test("only operators make links", async () => {
  for (const as of [auditor, holderOf("acct_a")]) {
    expect(harness.run("createSignInLink", { id: "ada", as })).rejects.toThrow();
  }
});
