import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Credential } from "../admin/admin-caller.ts";
import { openWorld, type World } from "../admin/authorization-world.ts";

let world: World;
/** Of each account. */
const users = { plain: 12, other: 2 };
const sessions: Record<keyof typeof users | "operator", Credential[]> = {
  plain: [],
  other: [],
  operator: [],
};
beforeAll(async () => {
  world = await openWorld();
  const signIn = async (role: "account_holder" | "operator", account?: string) =>
    world.signIn((await world.newUser(role, account)).email);
  for (const [name, { account }] of [
    ["plain", world.own],
    ["other", world.other],
  ] as const) {
    while (sessions[name].length < users[name]) {
      sessions[name].push(await signIn("account_holder", account));
    }
  }
  sessions.operator.push(await signIn("operator"));
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

/** Opens what each user of an account may, until one is refused; returns how many. */
async function fill(
  of: readonly Credential[],
  open: (as: Credential) => Promise<Response>,
  kept: Response[],
): Promise<number> {
  let opened = 0;
  for (const as of of) {
    for (let count = 0; count < 10; count += 1) {
      const response = await open(as);
      kept.push(response);
      if (response.status === 429) return opened;
      expect(response.status).toBe(200);
      opened += 1;
    }
  }
  return opened;
}

test("users of one account leave room for live streams of others", async () => {
  const kept: Response[] = [];
  const open = ({ headers }: Credential): Promise<Response> =>
    fetch(`${world.gateway.adminUrl}/admin/v1/live?topics=keys`, { headers: { ...headers } });
  // Half of three quarters of 300.
  expect(await fill(sessions.plain, open, kept)).toBe(113);
  expect(await fill(sessions.other, open, kept)).toBe(20);
  expect(await fill(sessions.operator, open, kept)).toBe(10);
  for (const response of kept) await response.body?.cancel();
}, 180_000);

test("users of one account leave room for others in the playground", async () => {
  const kept: Response[] = [];
  const leaving = new AbortController();
  const stalling = Array.from({ length: 64 }, () => ({ mode: "stall-mid" as const }));
  world.gateway.simulator.setFaultPlan(stalling);
  const keyOf = async (application: string): Promise<string> => {
    const limits = { requests_per_minute: 1_000, tokens_per_minute: 10_000_000 };
    const body = { application_id: application, plan: "enterprise", limits };
    return (await world.make("POST", "/keys", body)).key.id;
  };
  const openAs =
    (keyId: string) =>
    ({ headers, changeHeaders }: Credential): Promise<Response> =>
      fetch(`${world.gateway.adminUrl}/admin/v1/playground/chat/completions?key_id=${keyId}`, {
        method: "POST",
        headers: { ...headers, ...changeHeaders, "content-type": "application/json" },
        body: JSON.stringify({
          model: "plain-model",
          messages: [{ role: "user", content: "echo: one two three four five six" }],
          stream: true,
        }),
        signal: leaving.signal,
      });
  const own = await keyOf(world.own.application);
  const other = await keyOf(world.other.application);
  expect(await fill(sessions.plain, openAs(own), kept)).toBe(24);
  expect(await fill(sessions.other, openAs(other), kept)).toBe(12);
  expect(await fill(sessions.operator, openAs(other), kept)).toBe(10);
  leaving.abort();
  expect(kept).toHaveLength(24 + 12 + 10 + 2);
}, 180_000);
