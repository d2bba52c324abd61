import { afterEach, beforeEach, expect, test } from "bun:test";
import { generateApiKey, generateManagementToken } from "../../domain/keys/api-key.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Route } from "../../edge/dispatch/route.ts";
import { jsonReply } from "../../edge/replies/error-reply.ts";
import { accountOf, tokenOf } from "../../../test/contracts/control-fixtures.ts";
import { refusalOf, SignInHarness, TestBrowser } from "../../../test/support/sign-in-harness.ts";
import type { ManagementToken } from "../../store/entities.ts";

/** Routes behind the gate, which answer with their caller. */
const probes: readonly Route[] = (["GET", "POST", "PATCH", "DELETE"] as const).map((method) => ({
  method,
  path: "/admin/v1/probe",
  access: "principal",
  roles: ["operator", "account_holder", "auditor"],
  scope: method === "GET" ? "read" : "write",
  handle: ({ principal }) => jsonReply(principal),
}));
const path = "/admin/v1/probe";

let harness: SignInHarness;
let browser: TestBrowser;

beforeEach(async () => {
  harness = new SignInHarness({ routes: probes, localToken: "slc-local_x" });
  browser = new TestBrowser(harness);
  await harness.addUser("ada");
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

async function addToken(
  values: Partial<ManagementToken> = {},
  into: SignInHarness = harness,
): Promise<string> {
  const { publicId, text } = generateManagementToken(into.random);
  const now = into.clock.now();
  const token = tokenOf("tok_1", "ada", {
    publicId,
    digest: into.digest(text),
    createdAt: now,
    expiresAt: now + 3_600_000,
    ...values,
  });
  await into.store.change(({ tokens }) => tokens.insert(token));
  return text;
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test("a session lets its user in, with the user's role", async () => {
  await browser.signIn("ada@example.com");
  const response = await browser.send(path);
  expect(await response.json()).toEqual({
    kind: "session",
    userId: "ada",
    name: "ada@example.com",
    role: "operator",
    scopes: ["read", "write"],
  });
});

test("a request without a session or a token is refused", async () => {
  const response = await browser.send(path);
  expect(response.headers.get("www-authenticate")).toBe("Bearer");
  expect(await response.clone().text()).toContain("Sign in first");
  expect(await refusalOf(response)).toEqual([401, "not_signed_in"]);
});

test("a request with an ended session is asked to sign in again", async () => {
  await browser.signIn("ada@example.com");
  harness.clock.advance(30 * 60_000);
  const response = await browser.send(path);
  expect(await response.clone().text()).toContain("The session has ended. Sign in again.");
  expect(await refusalOf(response)).toEqual([401, "not_signed_in"]);
});

test("a session ends after 30 minutes without a request", async () => {
  await browser.signIn("ada@example.com");
  harness.clock.advance(29 * 60_000);
  expect((await browser.send(path)).status).toBe(200);
  harness.clock.advance(29 * 60_000);
  expect((await browser.send(path)).status).toBe(200);
  harness.clock.advance(30 * 60_000);
  expect(await refusalOf(await browser.send(path))).toEqual([401, "not_signed_in"]);
});

test("a session ends after 12 hours, however active it is", async () => {
  await browser.signIn("ada@example.com");
  for (let minutes = 0; minutes < 12 * 60 - 20; minutes += 20) {
    harness.clock.advance(20 * 60_000);
    expect((await browser.send(path)).status).toBe(200);
  }
  harness.clock.advance(20 * 60_000);
  expect((await browser.send(path)).status).toBe(401);
});

test("an active session outlives a short idle time", async () => {
  await using strict = new SignInHarness({ routes: probes, settings: { sessionIdleMs: 60_000 } });
  await strict.addUser("ada");
  const page = new TestBrowser(strict);
  await page.signIn("ada@example.com");
  for (let turns = 0; turns < 10; turns += 1) {
    strict.clock.advance(40_000);
    expect((await page.send(path)).status).toBe(200);
  }
});

test("the last use of a session is written at most once a minute", async () => {
  await browser.signIn("ada@example.com");
  const changes = async (): Promise<number> =>
    harness.connection.use(
      (database) => database.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? 0,
    );
  const before = await changes();
  harness.clock.advance(59_000);
  await browser.send(path);
  expect(await changes()).toBe(before);
  harness.clock.advance(1_000);
  for (let turn = 0; turn < 3; turn += 1) await browser.send(path);
  expect(await changes()).toBe(before + 1);
});

test("a disabled user's sessions and tokens stop at once", async () => {
  const token = await addToken();
  await browser.signIn("ada@example.com");
  await harness.store.change(async ({ users }) => {
    const user = await users.get("ada");
    if (user !== undefined) await users.update({ ...user, disabledAt: 5 });
  });
  expect((await browser.send(path)).status).toBe(401);
  expect((await new TestBrowser(harness).send(path, bearer(token))).status).toBe(401);
});

test("a change with a session needs its CSRF token", async () => {
  await browser.signIn("ada@example.com");
  expect((await browser.post(path, {})).status).toBe(200);
  const other = new TestBrowser(harness);
  await other.signIn("ada@example.com");
  for (const wrong of ["", "x", other.csrfToken ?? ""]) {
    const refused = await browser.post(path, {}, { "x-csrf-token": wrong });
    expect(await refusalOf(refused)).toEqual([403, "wrong_csrf_token"]);
    const removal = { method: "DELETE", headers: { "x-csrf-token": wrong } };
    expect((await browser.send(path, removal)).status).toBe(403);
  }
});

test("a change with a session must come from a page of the console", async () => {
  await browser.signIn("ada@example.com");
  const { publicUrl } = harness;
  for (const [headers, status] of [
    [{ origin: publicUrl }, 200],
    [{ origin: "https://evil.example" }, 403],
    [{ origin: "null" }, 403],
    [{ origin: "http://console.example.com" }, 403],
    [{ origin: `${publicUrl}.evil.example` }, 403],
    [{ "sec-fetch-site": "cross-site" }, 403],
    [{ "sec-fetch-site": "same-site" }, 403],
    [{ origin: "" }, 403],
  ] as const) {
    expect((await browser.post(path, {}, headers)).status).toBe(status);
  }
});

test("the refusal of a session's change without an origin names the header to send", async () => {
  await browser.signIn("ada@example.com");
  const refused = await browser.post(path, {}, { origin: "" });
  expect(await refused.text()).toContain(`needs the header \`origin: ${harness.publicUrl}\``);
});

test("a page of another origin reads nothing, even with a token or before signing in", async () => {
  const token = await addToken();
  await browser.signIn("ada@example.com");
  const origin = "https://evil.example";
  const requests = [
    browser.send(path, { headers: { origin } }),
    browser.send(path, { headers: { origin, authorization: `Bearer ${token}` } }),
    browser.send("/admin/v1/sign-in", { headers: { origin } }),
    browser.post("/admin/v1/session", { email: "a@b.example", password: "x" }, { origin }),
  ];
  for (const response of await Promise.all(requests)) {
    expect(response.headers.has("access-control-allow-origin")).toBe(false);
    expect(await refusalOf(response)).toEqual([403, "wrong_origin"]);
  }
});

test("on loopback the console may be opened by any name of this machine, on its own port", async () => {
  await using local = new SignInHarness({ routes: probes, publicUrl: "http://127.0.0.1:8081" });
  await local.addUser("ada");
  const page = new TestBrowser(local);
  await page.signIn("ada@example.com");
  const same = await page.post(path, {}, { origin: "http://localhost:8081" });
  expect(same.status).toBe(200);
  for (const origin of [
    "http://localhost:3000",
    "https://localhost:8081",
    "http://10.0.0.1:8081",
  ]) {
    expect((await page.post(path, {}, { origin })).status).toBe(403);
  }
});

test("a change with a form's content type is refused", async () => {
  await browser.signIn("ada@example.com");
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const refused = await browser.post(path, {}, headers);
  expect(await refusalOf(refused)).toEqual([415, "unsupported_content_type"]);
});

test("a token lets a script in within its scopes, without cookie and CSRF token", async () => {
  const token = await addToken({ scopes: ["read"] });
  const response = await browser.send(path, bearer(token));
  expect(await response.json()).toMatchObject({ kind: "token", userId: "ada", scopes: ["read"] });
  const script = { ...bearer(token), method: "DELETE" };
  expect(await refusalOf(await browser.send(path, script))).toEqual([403, "not_permitted"]);
});

test("an expired, a revoked, an unknown and a mistyped token get the same answer", async () => {
  const expired = await addToken({ expiresAt: harness.clock.now() });
  const revoked = await addToken({ id: "tok_2", revokedAt: 1 });
  const unknown = generateManagementToken(harness.random).text;
  const mistyped = `${unknown.slice(0, -1)}${unknown.endsWith("a") ? "b" : "a"}`;
  const answers = [];
  for (const token of [expired, revoked, unknown, mistyped, ""]) {
    const response = await browser.send(path, bearer(token));
    expect(response.status).toBe(401);
    answers.push(await response.text());
  }
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]).toContain("The management token is wrong, expired or revoked");
});

test("a known public id with another secret is refused", async () => {
  const digest = harness.digest("the text of another token");
  const token = await addToken({ digest });
  expect((await browser.send(path, bearer(token))).status).toBe(401);
});

test("a key of the data plane never opens the control plane", async () => {
  const { publicId, text } = generateApiKey(harness.random);
  await addToken({ publicId, digest: harness.digest(text) });
  expect((await browser.send(path, bearer(text))).status).toBe(401);
});

test("the last use of a token is written at most once a minute", async () => {
  const token = await addToken();
  const lastUse = async () =>
    (await harness.store.read(({ tokens }) => tokens.get("tok_1")))?.lastUsedAt;
  await browser.send(path, bearer(token));
  const first = await lastUse();
  expect(first).toBe(harness.clock.now());
  harness.clock.advance(59_000);
  await browser.send(path, bearer(token));
  expect(await lastUse()).toBe(first);
  harness.clock.advance(1_000);
  await browser.send(path, bearer(token));
  expect(await lastUse()).toBe(harness.clock.now());
});

test("a stream that still stands is no use of its token", async () => {
  const token = await addToken();
  const principal = (await (await browser.send(path, bearer(token))).json()) as Principal;
  const openedAt = harness.clock.now();
  harness.clock.advance(120_000);
  const request = new Request(`http://localhost${path}`, bearer(token));
  expect(await harness.gate.isStill({ request }, principal)).toBe(true);
  const { lastUsedAt } = (await harness.store.read(({ tokens }) => tokens.get("tok_1"))) ?? {};
  expect(lastUsedAt).toBe(openedAt);
});

test("the local token is an operator without a user", async () => {
  const response = await browser.send(path, bearer("slc-local_x"));
  expect(await response.json()).toEqual({
    kind: "local",
    name: "local",
    role: "operator",
    scopes: ["read", "write"],
  });
  expect((await browser.send(path, bearer("slc-local_y"))).status).toBe(401);
});

test("without the database the answer is not that of an ended session", async () => {
  const token = await addToken();
  await browser.signIn("ada@example.com");
  await harness.connection.close();
  for (const response of [await browser.send(path), await browser.send(path, bearer(token))]) {
    expect(await refusalOf(response)).toEqual([503, "storage_unavailable"]);
  }
});

test("a read-only database locks nobody out", async () => {
  const token = await addToken();
  await browser.signIn("ada@example.com");
  harness.clock.advance(120_000);
  await harness.connection.use((database) => database.run("PRAGMA query_only = 1"));
  expect((await browser.send(path)).status).toBe(200);
  expect((await browser.send(path, bearer(token))).status).toBe(200);
});

test("one user's requests are limited, and others at the same address are not", async () => {
  await using strict = new SignInHarness({ routes: probes, settings: { requestsPerMinute: 10 } });
  await strict.addUser("ada");
  await strict.addUser("bob");
  const [ada, bob] = [new TestBrowser(strict), new TestBrowser(strict)];
  await ada.signIn("ada@example.com");
  await bob.signIn("bob@example.com");
  const statuses = [];
  for (let turn = 0; turn < 11; turn += 1) statuses.push((await ada.send(path)).status);
  expect(statuses).toEqual([...Array<number>(10).fill(200), 429]);
  expect((await bob.send(path)).status).toBe(200);
});

test("a user's tokens share the limit of the user", async () => {
  await using strict = new SignInHarness({ routes: probes, settings: { requestsPerMinute: 10 } });
  await strict.addUser("ada");
  const page = new TestBrowser(strict);
  await page.signIn("ada@example.com");
  const tokens: string[] = [];
  for (let made = 0; made < 4; made += 1) {
    tokens.push(await addToken({ id: `tok_${made}` }, strict));
  }
  const statuses = [(await page.send(path)).status];
  for (let turn = 0; turn < 4; turn += 1) {
    for (const token of tokens) statuses.push((await page.send(path, bearer(token))).status);
  }
  expect(statuses.filter((status) => status === 200)).toHaveLength(10);
  expect(statuses.filter((status) => status === 429)).toHaveLength(7);
});

test("the users of an account share a limit", async () => {
  await using strict = new SignInHarness({ routes: probes, settings: { requestsPerMinute: 10 } });
  await strict.store.change((to) => to.accounts.insert(accountOf("acct_a")));
  const statuses: number[] = [];
  for (let user = 0; user < 7; user += 1) {
    await strict.addUser(`holder${user}`, { role: "account_holder", accountId: "acct_a" });
    const token = await addToken({ id: `tok_${user}`, userId: `holder${user}` }, strict);
    const page = new TestBrowser(strict);
    for (let turn = 0; turn < 8; turn += 1) {
      statuses.push((await page.send(path, bearer(token))).status);
    }
  }
  expect(statuses.slice(0, 50)).toEqual(Array<number>(50).fill(200));
  expect(statuses.slice(50)).toEqual(Array<number>(6).fill(429));
});

test("wrong credentials from an address are limited, and users signed in there are still served", async () => {
  await using strict = new SignInHarness({ routes: probes, settings: { requestsPerMinute: 10 } });
  await strict.addUser("ada");
  const ada = new TestBrowser(strict);
  await ada.signIn("ada@example.com");
  const stranger = new TestBrowser(strict);
  const statuses = [];
  for (let turn = 0; turn < 12; turn += 1) {
    statuses.push((await stranger.send(path, bearer("junk"))).status);
  }
  // The sign-in was one request of the address.
  expect(statuses).toEqual([...Array<number>(9).fill(401), 429, 429, 429]);
  expect((await ada.send(path)).status).toBe(200);
});

test("made-up credentials cause a bounded number of reads, and those of users there work meanwhile", async () => {
  await using strict = new SignInHarness({ routes: probes, settings: { requestsPerMinute: 10 } });
  await strict.addUser("ada");
  const ada = new TestBrowser(strict);
  await ada.signIn("ada@example.com");
  expect((await ada.send(path)).status).toBe(200);
  let reads = 0;
  const { store } = strict;
  const read = store.read.bind(store);
  store.read = (work) => {
    reads += 1;
    return read(work);
  };
  const stranger = new TestBrowser(strict);
  for (let turn = 0; turn < 60; turn += 1) {
    const { text } = generateManagementToken(strict.random);
    const { status } = await stranger.send(path, bearer(text));
    expect(status).toBe(turn < 9 ? 401 : 429);
  }
  stranger.cookies.set("__Host-sluice_session", "x".repeat(43));
  for (let turn = 0; turn < 20; turn += 1) expect((await stranger.send(path)).status).toBe(429);
  expect(reads).toBeLessThanOrEqual(20);
  expect((await ada.send(path)).status).toBe(200);
  strict.clock.advance(70_000);
  expect((await stranger.send(path)).status).toBe(401);
});
