import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Credential } from "../admin/admin-caller.ts";
import { openWorld, type PrincipalName, type World } from "../admin/authorization-world.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { liveReader } from "./event-reader.ts";

const clock = new ManualClock();
let world: World;
beforeAll(async () => {
  const models = `
  plain-model:
    kind: chat
    context_window: 8192
    targets: [{ model: simulated-chat, upstream: simulator, pool: pool-plain }]
  slow-model:
    kind: chat
    context_window: 8192
    targets: [{ model: fault-slow-first-byte-60000, upstream: simulator, pool: pool-plain }]
  other-model:
    kind: chat
    context_window: 8192
    targets: [{ model: simulated-other, upstream: simulator, pool: pool-zebra }]`;
  world = await openWorld({ models }, clock);
  // The clock was moved: keys are read anew.
  while ((await call("plain-model", world.gateway.key)).status !== 200) await Bun.sleep(20);
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

function credentialOf(name: PrincipalName): Credential {
  const principal = world.principals.find((each) => each.name === name);
  if (principal === undefined) throw new Error(`there is no ${name}`);
  return principal.good;
}

const open = (query: string, { headers }: Credential): Promise<Response> =>
  fetch(`${world.gateway.adminUrl}/admin/v1/live?${query}`, { headers: { ...headers } });

const call = (model: string, key: string): Promise<Response> =>
  world.gateway.post(
    "/v1/chat/completions",
    { model, messages: [{ role: "user", content: "Hello" }] },
    { headers: { authorization: `Bearer ${key}` } },
  );

test("a stream tells everything, then what has changed", async () => {
  const response = await open("topics=gates,processes", credentialOf("operator"));
  expect(response.headers.get("content-type")).toStartWith("text/event-stream");
  const events = liveReader(response);
  const full = await events.next();
  expect(full?.event).toBe("full");
  expect(Object.keys(full?.data ?? {}).toSorted()).toEqual(["gates", "processes"]);
  expect(full?.data["gates"]?.["pool:pool-plain"]).toMatchObject({ in_flight: 0 });
  expect(full?.data["processes"]?.["1"]).toMatchObject({ process: 1 });
  const leaving = new AbortController();
  const slow = world.gateway.post(
    "/v1/chat/completions",
    { model: "slow-model", messages: [{ role: "user", content: "Hello" }] },
    { signal: leaving.signal },
  );
  const left = slow.catch(() => undefined);
  const change = await events.next();
  expect(change?.event).toBe("change");
  expect(change?.id).toBeGreaterThan(full?.id ?? Infinity);
  expect(change?.data["gates"]?.["pool:pool-plain"]).toMatchObject({ in_flight: 1 });
  expect(change?.data["gates"]).not.toHaveProperty(`pool:pool-zebra`);
  leaving.abort();
  await left;
  const back = await events.next();
  expect(back?.data["gates"]?.["pool:pool-plain"]).toMatchObject({ in_flight: 0 });
  await events.leave();
});

test("an account sees its own keys, and nothing of another account or of the gateway", async () => {
  for (const name of ["account holder", "auditor of one account"] as const) {
    const credential = credentialOf(name);
    for (const topic of ["processes", "targets", "gates"]) {
      expect((await open(`topics=keys,${topic}`, credential)).status).toBe(403);
    }
    expect((await open(`topics=key&key_id=${world.other.key}`, credential)).status).toBe(404);
    expect((await open("topics=key&key_id=key_unknown", credential)).status).toBe(404);
  }
  const keys = [];
  for (const of of [world.own, world.other]) {
    const { key, api_key: text } = await world.make("POST", "/keys", {
      application_id: of.application,
      plan: "standard",
    });
    keys.push(key.id);
    expect((await call("plain-model", text)).status).toBe(200);
  }
  const [own = "", other = ""] = keys;
  const seenBy = async (name: PrincipalName): Promise<readonly string[]> => {
    const events = liveReader(await open("topics=keys", credentialOf(name)));
    const full = await events.next();
    await events.leave();
    return Object.keys(full?.data["keys"] ?? {});
  };
  // Uses are told twice a second.
  while (!(await seenBy("operator")).includes(other)) await Bun.sleep(50);
  for (const name of ["account holder", "auditor of one account"] as const) {
    const seen = await seenBy(name);
    expect(seen).toContain(own);
    expect(seen).not.toContain(other);
  }
});

test("one key is watched with the last use of its secrets", async () => {
  const body = { application_id: world.own.application, plan: "standard" };
  const { key, api_key: text } = await world.make("POST", "/keys", body);
  const events = liveReader(
    await open(`topics=key&key_id=${key.id}`, credentialOf("account holder")),
  );
  const full = await events.next();
  expect(full?.data["key"]?.[key.id]).toMatchObject({
    use: { requests: { used: 0 } },
    secrets: [{ last_used_at: null }],
  });
  expect((await call("plain-model", text)).status).toBe(200);
  const change = await events.next();
  expect(change?.data["key"]?.[key.id]).toMatchObject({
    use: { requests: { used: 1 } },
    secrets: [{ last_used_at: expect.any(String) }],
  });
  await events.leave();
  const { key: second } = await world.make("POST", "/keys", body);
  const watchBoth = (ids: string) =>
    open(`topics=key&key_id=${ids}`, credentialOf("account holder"));
  const both = liveReader(await watchBoth(`${key.id},${second.id}`));
  const { data } = (await both.next()) ?? {};
  expect(Object.keys(data?.["key"] ?? {})).toEqual([key.id, second.id]);
  await both.leave();
  // A key may be named by the prefix of a secret.
  const prefixed = liveReader(await watchBoth(text.slice(0, 15)));
  expect(Object.keys((await prefixed.next())?.data["key"] ?? {})).toEqual([key.id]);
  await prefixed.leave();
  expect((await watchBoth(`${key.id},${world.other.key}`)).status).toBe(404);
});

test("a user has a bounded number of streams, and who leaves makes room", async () => {
  const { email } = await world.newUser("auditor");
  const session = await world.signIn(email);
  const streams = [];
  for (let count = 0; count < 10; count += 1) {
    streams.push(liveReader(await open("topics=processes", session)));
  }
  const refused = await open("topics=processes", session);
  expect([refused.status, refused.headers.has("retry-after")]).toEqual([429, true]);
  await streams[0]?.leave();
  let status = 429;
  while (status === 429) {
    await Bun.sleep(20);
    const again = await open("topics=processes", session);
    ({ status } = again);
    await again.body?.cancel();
  }
  expect(status).toBe(200);
  for (const events of streams) await events.leave();
});
