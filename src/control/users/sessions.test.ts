import { afterEach, beforeEach, expect, test } from "bun:test";
import { sessionOf, SignInHarness, TestBrowser } from "../../../test/support/sign-in-harness.ts";
import { operator } from "../../../test/support/admin-fixture.ts";
import type { Principal } from "../../domain/principal.ts";
import { sessionPrincipal } from "../sign-in/services.ts";

let harness: SignInHarness;
let ada: Principal;
let bob: Principal;

beforeEach(async () => {
  harness = new SignInHarness();
  ada = sessionPrincipal(await harness.addUser("ada", { role: "auditor" }));
  bob = sessionPrincipal(await harness.addUser("bob", { role: "auditor" }));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

interface Listed {
  readonly id: string;
  readonly user: string;
  readonly address: string;
}

async function list(as: Principal, query = {}): Promise<readonly Listed[]> {
  const answer = await harness.run("listSessions", { as, query });
  return (answer as { data: Listed[] }).data;
}

async function signIn(id: string, address = "192.0.2.1"): Promise<TestBrowser> {
  const browser = new TestBrowser(harness, address);
  expect((await browser.signIn(`${id}@example.com`)).status).toBe(200);
  return browser;
}

const isOpen = async (browser: TestBrowser): Promise<boolean> =>
  (await browser.send("/admin/v1/session")).status === 200;

test("users see their own sessions and end one of them", async () => {
  const here = await signIn("ada");
  harness.clock.advance(1_000);
  const elsewhere = await signIn("ada", "198.51.100.7");
  await signIn("bob");
  const found = await list(ada);
  expect(found.map(({ user, address }) => [user, address])).toEqual([
    ["ada@example.com", "198.51.100.7"],
    ["ada@example.com", "192.0.2.1"],
  ]);
  const shown = (await sessionOf(await here.send("/admin/v1/session"))) as { id?: string };
  expect(shown.id).toBe(found[1]?.id ?? "");
  await harness.run("endSession", { as: ada, id: found[0]?.id ?? "" });
  expect(await isOpen(elsewhere)).toBe(false);
  expect(await isOpen(here)).toBe(true);
  expect(await list(ada)).toHaveLength(1);
  const { items } = await harness.store.read(({ audit }) => audit.list({}, { limit: 1 }));
  expect(items[0]).toMatchObject({
    action: "session.end",
    actor: { id: "ada" },
    subject: { type: "user", id: "ada" },
    before: { address: "198.51.100.7" },
  });
});

test("only operators see and end the sessions of others", async () => {
  const browser = await signIn("bob");
  const [session] = await list(operator, { user_id: "bob" });
  const id = session?.id ?? "";
  expect(await list(ada)).toEqual([]);
  expect(list(ada, { user_id: "bob" })).rejects.toThrow("This user does not exist");
  for (const named of [id, "unknown"]) {
    expect(harness.run("endSession", { as: ada, id: named })).rejects.toThrow(
      "This session does not exist",
    );
  }
  expect(await isOpen(browser)).toBe(true);
  await harness.run("endSession", { id });
  expect(await isOpen(browser)).toBe(false);
  expect(await list(bob)).toEqual([]);
});

test("a session that ended by itself is not listed", async () => {
  await signIn("ada");
  const used = await signIn("ada");
  harness.clock.advance(29 * 60_000);
  expect(await isOpen(used)).toBe(true);
  harness.clock.advance(60_000);
  expect(await list(ada)).toHaveLength(1);
  harness.clock.advance(30 * 60_000);
  expect(await list(operator)).toEqual([]);
});

test("the id of a session does not sign in", async () => {
  await signIn("ada");
  const [session] = await list(ada);
  const thief = new TestBrowser(harness);
  thief.cookies.set("__Host-sluice_session", (session?.id ?? "").slice(0, 43));
  expect(await isOpen(thief)).toBe(false);
});
