import { expect, test } from "bun:test";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import type { ValkeyClient } from "../../src/store/limits/valkey/client.ts";
import type { ValkeyLimits } from "../../src/store/limits/valkey/limit-store.ts";
import { shardOf } from "../../src/store/limits/valkey/scopes.ts";
import { startProcess, until } from "../support/shared-slots-world.ts";
import {
  startCluster,
  startWithSentinel,
  startWithTls,
  startWithUser,
  type ValkeyForm,
} from "../support/valkey-forms.ts";
import { clientOf, limitsOver } from "../support/valkey-limits.ts";
import { describeWithValkey } from "../support/valkey-server.ts";

const limit = 40;

describeWithValkey(() => {
  test.each([
    ["a user with few rights", startWithUser],
    ["TLS", startWithTls],
    ["three servers of a cluster", startCluster],
    ["Sentinel", startWithSentinel],
  ])("limits and slots are shared through %s", async (_form, start) => {
    await using form = await start();
    await checkLimits(form);
    await checkSlots(form);
  });

  test("while a slot of a cluster moves, nothing is granted twice", async () => {
    await using form = await startCluster();
    const client = await trusted(form);
    const store = await limitsOver(client, { processes: () => 2 });
    expect(await admittedBy(store, 10)).toBe(10);
    const shard = `sluice:{${shardOf("account of key", client.shards)}}`;
    const slot = String(await client.send("CLUSTER", ["KEYSLOT", shard]));
    const index = Math.floor(Number(slot) / 5_461);
    const [source, target] = [form.servers[index], form.servers[(index + 1) % 3]];
    if (source === undefined || target === undefined) throw new Error("a server is missing");
    const [from, to] = [source, target].map((server) => server.command("CLUSTER", "MYID"));
    await target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", String(await from));
    await source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", String(await to));
    await admittedBy(store, 5);
    const keys = await source.command("CLUSTER", "GETKEYSINSLOT", slot, "1000");
    for (const key of Array.isArray(keys) ? keys.map(String) : []) {
      await source.command("MIGRATE", "127.0.0.1", String(target.port), key, "0", "5000");
    }
    for (const server of [target, source]) {
      await server.command("CLUSTER", "SETSLOT", slot, "NODE", String(await to));
    }
    await store.tick();
    expect(await admittedBy(store, limit)).toBeLessThanOrEqual(limit - 10);
    client.close();
  });

  test("when Sentinel has replaced the primary, each process grants its share", async () => {
    await using form = await startWithSentinel();
    const clients = [await trusted(form), await trusted(form)];
    const [one, other] = await Promise.all(
      clients.map((client) => limitsOver(client, { processes: () => 2, timeoutMs: 500 })),
    );
    if (one === undefined || other === undefined) throw new Error("two stores are needed");
    expect(await admittedBy(one, limit)).toBe(limit);
    await form.primary.kill();
    const isBack = async (): Promise<boolean> => {
      await Promise.all([one.tick(), other.tick()]);
      return one.trust.answers && other.trust.answers;
    };
    await until(async () => !(await isBack()));
    await until(isBack);
    expect([one.trust.decides, other.trust.decides]).toEqual([false, false]);
    expect(await admittedBy(one, limit)).toBe(0);
    expect(await admittedBy(other, limit)).toBe(limit / 2);
    for (const client of clients) client.close();
  });

  test("wrong passwords and unknown authorities are named as reasons", async () => {
    await using user = await startWithUser();
    const wrong = await clientOf({ url: user.url.replace("pass%20word", "other") });
    expect(await reasonOf(wrong)).toContain("WRONGPASS");
    wrong.close();
    await using tls = await startWithTls();
    const unknown = await clientOf({ url: tls.url });
    expect(await reasonOf(unknown)).toMatch(/certificate/i);
    unknown.close();
  });
});

/** A client of servers that have had their data for long. */
async function trusted(form: ValkeyForm): Promise<ValkeyClient> {
  const { authorities } = form;
  const client = await clientOf(form, { authorities });
  const script = { name: "old", text: "return redis.call('SET', KEYS[1], '0::')" };
  for (let shard = 0; shard < client.shards; shard += 1) {
    await client.run(script, [`sluice:{${shard}}:since`], []);
  }
  return client;
}

async function reasonOf(client: ValkeyClient): Promise<string> {
  return String(await client.send("PING", []).catch((error: unknown) => error));
}

let calls = 0;

async function admittedBy(store: ValkeyLimits, count: number, key = "key"): Promise<number> {
  const terms = { owner: `account of ${key}` };
  const limits = { requestsPerMinute: limit, tokensPerMinute: 1_000_000 };
  const scopes = minuteScopes(key, limits, terms);
  const asked = Array.from({ length: count }, async () =>
    store.acquire({ callId: `call ${(calls += 1)}`, scopes, tokens: 1 }),
  );
  return (await Promise.all(asked)).filter(({ isAdmitted }) => isAdmitted).length;
}

/** Many keys, so that all servers of a cluster have some. */
async function checkLimits(form: ValkeyForm): Promise<void> {
  const clients = [await trusted(form), await trusted(form)];
  const [one, other] = await Promise.all(
    clients.map((client) => limitsOver(client, { processes: () => 2 })),
  );
  if (one === undefined || other === undefined) throw new Error("two stores are needed");
  for (const key of Array.from({ length: 12 }, (_, index) => `key ${index}`)) {
    const admitted = await Promise.all([
      admittedBy(one, limit, key),
      admittedBy(other, limit, key),
    ]);
    expect(admitted.reduce((sum, each) => sum + each)).toBe(limit);
  }
  expect([one.trust.decides, other.trust.decides]).toEqual([true, true]);
  for (const client of clients) client.close();
}

async function checkSlots(form: ValkeyForm): Promise<void> {
  const { authorities } = form;
  const options = { pool: { maxInFlight: 7 }, authorities, processes: 2 };
  await using one = await startProcess(form, options);
  await using other = await startProcess(form, options);
  const enter = async (): Promise<number> => {
    const places = await Promise.all([one, other].map((process) => process.enter()));
    return places.filter((place) => place !== undefined).length;
  };
  let held = 0;
  // A slot may be on its way to the other process.
  while (held < 7) held += await enter();
  expect(held).toBe(7);
  expect(await enter()).toBe(0);
}
