import { afterEach, beforeEach, expect, test } from "bun:test";
import { Secret } from "../../../domain/keys/secret.ts";
import {
  refusalOf,
  sessionOf,
  SignInHarness,
  TestBrowser,
  testPassword,
} from "../../../../test/support/sign-in-harness.ts";

let harness: SignInHarness;
let browser: TestBrowser;

beforeEach(() => {
  harness = new SignInHarness();
  browser = new TestBrowser(harness);
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

const wanted = { email: "Ada@example.com", name: "Ada", password: testPassword };
const path = "/admin/v1/bootstrap";

test("the printed token creates the first operator and signs them in", async () => {
  await harness.bootstrap.start();
  const [token] = harness.bootstrapTokens;
  const before = await browser.send("/admin/v1/sign-in");
  expect(await before.json()).toMatchObject({ needs_bootstrap: true });
  const response = await browser.post(path, { ...wanted, token });
  expect(response.status).toBe(201);
  const { user } = await sessionOf(response);
  expect(user).toMatchObject({ email: "ada@example.com", name: "Ada", role: "operator" });
  expect((await browser.send("/admin/v1/session")).status).toBe(200);
  const { items } = await harness.store.read(({ audit }) => audit.list({}, { limit: 10 }));
  expect(items.map(({ action }) => action)).toEqual(["session.start", "user.create"]);
  expect(JSON.stringify(items)).not.toContain("argon2");
});

test("the token works once", async () => {
  await harness.bootstrap.start();
  const [token] = harness.bootstrapTokens;
  await browser.post(path, { ...wanted, token });
  const again = await browser.post(path, { ...wanted, email: "eve@example.com", token });
  expect(await refusalOf(again)).toEqual([401, "wrong_credentials"]);
});

test("of two concurrent requests with the token, one creates an operator", async () => {
  await harness.bootstrap.start();
  const [token] = harness.bootstrapTokens;
  const responses = await Promise.all(
    ["ada@example.com", "eve@example.com"].map((email) =>
      new TestBrowser(harness).post(path, { ...wanted, email, token }),
    ),
  );
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([201, 401]));
});

test("the token expires after an hour", async () => {
  await harness.bootstrap.start();
  const [token] = harness.bootstrapTokens;
  harness.clock.advance(3_600_000);
  expect((await browser.post(path, { ...wanted, token })).status).toBe(401);
});

test("an operator created in another way ends the token", async () => {
  await harness.bootstrap.start();
  const [token] = harness.bootstrapTokens;
  await harness.addUser("other");
  expect((await browser.post(path, { ...wanted, token })).status).toBe(401);
});

test("a wrong token creates nobody, nor does an empty one before a token exists", async () => {
  for (const token of [" ", "x"]) {
    const refused = await browser.post(path, { ...wanted, token });
    expect(await refusalOf(refused)).toEqual([401, "wrong_credentials"]);
  }
  await harness.bootstrap.start();
  expect((await browser.post(path, { ...wanted, token: "x" })).status).toBe(401);
});

test("a weak password leaves the token valid for another try", async () => {
  await harness.bootstrap.start();
  const [token] = harness.bootstrapTokens;
  const weak = await browser.post(path, { ...wanted, token, password: "short" });
  expect(await refusalOf(weak)).toEqual([400, "invalid_value"]);
  expect((await browser.post(path, { ...wanted, token })).status).toBe(201);
});

test("no token is created when there is an operator", async () => {
  await harness.addUser("ada");
  await harness.bootstrap.start();
  expect(harness.bootstrapTokens).toEqual([]);
});

test("an auditor alone does not prevent the first operator", async () => {
  await harness.addUser("reader", { role: "auditor" });
  await harness.bootstrap.start();
  const [token] = harness.bootstrapTokens;
  expect((await browser.post(path, { ...wanted, token })).status).toBe(201);
});

test("the configured token is used if there is one", async () => {
  const bootstrapToken = new Secret("a token of the configuration");
  await using configured = new SignInHarness({ settings: { bootstrapToken } });
  await configured.bootstrap.start();
  const page = new TestBrowser(configured);
  const response = await page.post(path, { ...wanted, token: "a token of the configuration" });
  expect(response.status).toBe(201);
});

test("tries of tokens are limited by address", async () => {
  await harness.bootstrap.start();
  for (let tries = 0; tries < 25; tries += 1) {
    expect((await browser.post(path, { ...wanted, token: "guess" })).status).toBe(401);
  }
  expect((await browser.post(path, { ...wanted, token: "guess" })).status).toBe(429);
});
