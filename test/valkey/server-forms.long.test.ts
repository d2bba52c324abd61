import { expect, test } from "bun:test";
import { systemClock } from "../../src/domain/clock.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { keySlot } from "../../src/store/coordinator/valkey/connection/key-slot.ts";
import { SharedLimits } from "../../src/store/coordinator/valkey/limits/shared-limits.ts";
import type { ValkeyConnection } from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";
import { ValkeyRefusals } from "../../src/store/coordinator/valkey/refusals/valkey-refusals.ts";
import { startProcess, until } from "../support/allotted-world.ts";
import {
  startCluster,
  startWithSentinel,
  startWithTls,
  startWithUser,
  type ValkeyForm,
} from "../support/valkey-forms.ts";
import { connectTo, describeWithValkey } from "../support/valkey-server.ts";

const limit = 40;

async function checkRefusals(form: ValkeyForm): Promise<void> {
  const refusals = new ValkeyRefusals(await connectTo(form, form));
  const explanation = { rule: "pool_busy", summary: "The pool is busy.", keyId: "key" } as const;
  const refusal = { id: "req_1", at: 1, status: 429, code: null, explanation };
  await refusals.keep(refusal);
  expect(await refusals.find("req_1")).toEqual(refusal);
  expect(await refusals.list({}, 10)).toEqual([refusal]);
  refusals.close();
}

describeWithValkey(() => {
  test.each([
    ["a user with few rights", startWithUser],
    ["TLS", startWithTls],
    ["three servers of a cluster", startCluster],
    ["Sentinel", startWithSentinel],
  ])("limits and places are shared through %s", async (_form, start) => {
    await using form = await start();
    await checkLimits(form);
    await checkPlaces(form);
    await checkRefusals(form);
  });

  test("while a slot of a cluster moves, workers grant their shares, and nothing is lost", async () => {
    await using form = await startCluster();
    const connection = await connectTo(form);
    const store = storeOver(connection);
    expect(await admittedBy(store, 10)).toBe(10);
    const slot = String(keySlot("{account of key}"));
    const index = Math.floor(Number(slot) / 5_461);
    const [source, target] = [form.servers[index], form.servers[(index + 1) % 3]];
    if (source === undefined || target === undefined) throw new Error("a server is missing");
    const [from, to] = [source, target].map((server) => server.command("CLUSTER", "MYID"));
    await target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", String(await from));
    await source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", String(await to));
    // The server has the keys of the account, but not the one of a new call.
    expect(await admittedBy(store, 5)).toBe(5);
    expect(connection.isUp).toBe(true);
    const keys = await source.command("CLUSTER", "GETKEYSINSLOT", slot, "1000");
    for (const key of Array.isArray(keys) ? keys.map(String) : []) {
      await source.command("MIGRATE", "127.0.0.1", String(target.port), key, "0", "5000");
    }
    for (const server of [target, source]) {
      await server.command("CLUSTER", "SETSLOT", slot, "NODE", String(await to));
    }
    await store.catchUp();
    expect(await admittedBy(store, limit)).toBe(limit - 15);
    connection.close();
  });

  test("when Sentinel has replaced the primary, nothing that it had told its replica is granted again", async () => {
    await using form = await startWithSentinel();
    const connection = await connectTo(form);
    const [one, other] = [storeOver(connection), storeOver(connection)];
    expect(await admittedBy(one, 30)).toBe(30);
    while (Number(await form.primary.command("WAIT", "1", "1000")) < 1) await Bun.sleep(10);
    // The WAIT of another connection says nothing of these writes; the offsets do.
    await until(async () => (await offsetOf(form.primary)) <= (await offsetOf(form.replica)));
    await form.primary.kill();
    await until(() => !connection.isUp);
    await until(() => connection.isUp);
    expect((await admittedBy(other, limit)) + (await admittedBy(one, limit))).toBe(limit - 30);
    connection.close();
  });

  test("wrong passwords and unknown authorities are named as reasons", async () => {
    await using user = await startWithUser();
    const wrong = await connectTo({ url: user.url.replace("pass%20word", "other") });
    expect(await reasonOf(wrong)).toContain("WRONGPASS");
    wrong.close();
    await using tls = await startWithTls();
    const unknown = await connectTo({ url: tls.url });
    expect(unknown.isUp).toBe(false);
    expect(await reasonOf(unknown)).toMatch(/certificate/i);
    unknown.close();
  });
});

async function offsetOf(server: { command(...words: [string, string]): Promise<unknown> }) {
  const info = String(await server.command("INFO", "replication"));
  return Number(/^(?:slave_repl_offset|master_repl_offset):(\d+)/m.exec(info)?.[1]);
}

async function reasonOf(connection: ValkeyConnection): Promise<string> {
  return String(await connection.send("a", "PING", []).catch((error: unknown) => error));
}

let calls = 0;

function storeOver(connection: ValkeyConnection): SharedLimits {
  return new SharedLimits({
    connection,
    clock: systemClock,
    random: Math.random,
    reservationTtlMs: 600_000,
    scopeLimit: 1_000,
    workers: () => 2,
    onError(error) {
      throw error;
    },
  });
}

async function admittedBy(store: SharedLimits, count: number, key = "key"): Promise<number> {
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
  const connections = [await connectTo(form, form), await connectTo(form, form)];
  const [one, other] = connections.map(storeOver);
  if (one === undefined || other === undefined) throw new Error("two stores are needed");
  for (const key of Array.from({ length: 12 }, (_, index) => `key ${index}`)) {
    const admitted = await Promise.all([
      admittedBy(one, limit, key),
      admittedBy(other, limit, key),
    ]);
    expect(admitted.reduce((sum, each) => sum + each)).toBe(limit);
  }
  expect(connections.every(({ isUp }) => isUp)).toBe(true);
  for (const connection of connections) connection.close();
}

async function checkPlaces(form: ValkeyForm): Promise<void> {
  const { authorities } = form;
  const options = { pool: { maxInFlight: 7 }, ...(authorities !== undefined && { authorities }) };
  await using one = await startProcess(form, options);
  await using other = await startProcess(form, options);
  const enter = async (): Promise<number> => {
    const places = await Promise.all([one, other].map((process) => process.enter()));
    return places.filter((place) => place !== undefined).length;
  };
  let held = 0;
  // A call waits for a short time only, and places may be on their way to the other process.
  while (held < 7) held += await enter();
  expect(held).toBe(7);
  expect(await enter()).toBe(0);
}
