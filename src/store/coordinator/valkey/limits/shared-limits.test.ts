import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  contractReservationTtlMs,
  limitStoreContract,
} from "../../../../../test/contracts/limit-store-contract.ts";
import { ManualClock } from "../../../../../test/support/manual-clock.ts";
import { steered, steeredBy } from "../../../../../test/support/steered-valkey.ts";
import {
  connectTo,
  describeWithValkey,
  startValkey,
  type ValkeyServer,
} from "../../../../../test/support/valkey-server.ts";
import { systemClock } from "../../../../domain/clock.ts";
import { minuteScopes } from "../../../../domain/limits/limit-scope.ts";
import type { LimitStore } from "../../../store.ts";
import { createMemoryLimitStore } from "../../memory/limit-store.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { nextTurn } from "../../../../domain/waiting/wait.ts";
import { notSent, ValkeyUnavailable } from "../connection/valkey-errors.ts";
import { leasesChannel } from "./scripts/leases-channel.ts";
import { limitScripts } from "./scripts/limit-scripts.ts";
import { SharedLimits } from "./shared-limits.ts";

const limit = 1_000;
const scopes = minuteScopes(
  "key",
  { requestsPerMinute: limit, tokensPerMinute: 1_000_000 },
  { owner: "account" },
);

describeWithValkey(() => {
  let server: ValkeyServer;
  let connection: ValkeyConnection;
  beforeAll(async () => {
    server = await startValkey();
    connection = await connectTo(server, {
      scripts: [...limitScripts, ...limitScripts.map(steered)],
    });
  });
  afterAll(async () => {
    connection.close();
    await server[Symbol.asyncDispose]();
  });

  async function stores(count: number, isLeasing = true): Promise<readonly SharedLimits[]> {
    await server.command("FLUSHALL");
    const terms = { connection, workers: () => count, isLeasing };
    return Array.from({ length: count }, () => new SharedLimits({ ...defaults, ...terms }));
  }

  test("of 4,000 requests at once in each of three stores, exactly the limit is admitted", async () => {
    const all = await stores(3);
    const admitted = await Promise.all(all.map((store) => admittedBy(store, 4_000)));
    expect(admitted.reduce((sum, each) => sum + each, 0)).toBe(limit);
  });

  test("after a loss of all data, the stores in use restore what they have admitted", async () => {
    // With a lease, a store would not ask before it has ended.
    const all = await stores(3, false);
    for (const store of all) expect(await admittedBy(store, 300)).toBe(300);
    await server.command("FLUSHALL");
    // Each restores its own use before it is granted anything.
    await Promise.all(all.map((store) => admittedBy(store, 1)));
    const admitted = await Promise.all(all.map((store) => admittedBy(store, 1_000)));
    expect(3 + admitted.reduce((sum, each) => sum + each, 0)).toBe(100);
  });

  test("an account with many keys is restored as it was", async () => {
    const [one] = await stores(1);
    if (one === undefined) throw new Error("a store is needed");
    const keys = Array.from({ length: 250 }, (_, index) => `key ${index}`);
    const limits = { requestsPerMinute: limit, tokensPerMinute: 1_000_000 };
    for (const id of keys) {
      const ofBoth = [id, "account"].flatMap((name) =>
        minuteScopes(name, limits, { owner: "account" }),
      );
      await one.acquire({ callId: `call of ${id}`, scopes: ofBoth, tokens: 3 });
    }
    const before = await chargedIn(server);
    expect(before.size).toBe(2 * keys.length + 2);
    await server.command("FLUSHALL");
    one.restore();
    await one.catchUp();
    expect(await chargedIn(server)).toEqual(before);
  });

  test("without the server each store grants its share once, and it is told of that", async () => {
    const all = await stores(2);
    for (const store of all) expect(await admittedBy(store, 200)).toBe(200);
    await server.kill();
    while (connection.isUp) await Bun.sleep(10);
    for (const store of all) expect(await admittedBy(store, 1_000)).toBe(300);
    await server.start();
    while (!connection.isUp) await Bun.sleep(10);
    await Promise.all(all.map((store) => store.catchUp()));
    for (const store of all) expect(await admittedBy(store, 100)).toBe(0);
  });

  test("a call admitted without the server is settled in it", async () => {
    const [one, other] = await stores(2);
    if (one === undefined || other === undefined) throw new Error("two stores are needed");
    await server.kill();
    while (connection.isUp) await Bun.sleep(10);
    const tokens = 400_000;
    const decision = await one.acquire({ callId: "alone", scopes, tokens });
    expect(decision.isAdmitted).toBe(true);
    await server.start();
    while (!connection.isUp) await Bun.sleep(10);
    await one.catchUp();
    expect(await leftIn(other)).toBe(600_000);
    one.settle("alone", 100_000);
    expect(await leftIn(other)).toBe(900_000);
  });

  test("what a call uses between a failed report and the next one is charged once", async () => {
    const [other] = await stores(1);
    if (other === undefined) throw new Error("a store is needed");
    let isLost = false;
    const failing: Pick<ValkeyConnection, "run" | "subscribe"> = {
      subscribe: () => () => undefined,
      async run(script, keys, parameters) {
        if (isLost) throw new ValkeyUnavailable("it does not answer");
        return connection.run(script, keys, parameters);
      },
    };
    const one = new SharedLimits({ ...defaults, connection: failing, workers: () => 1 });
    isLost = true;
    await one.acquire({ callId: "long", scopes, tokens: 10, mostTokens: 5_000 });
    // The worker tries to tell of it, in vain.
    await one.acquire({ callId: "short", scopes, tokens: 1 });
    one.use("long", 3_000);
    isLost = false;
    await one.catchUp();
    expect(await leftIn(other)).toBe(1_000_000 - 3_001);
    one.settle("long", 4_000);
    await one.catchUp();
    expect(await leftIn(other)).toBe(1_000_000 - 4_001);
  });

  test("a lease whose answer comes after its recall is given back", async () => {
    const [other] = await stores(2);
    if (other === undefined) throw new Error("a store is needed");
    const { promise: recalled, resolve: recall } = Promise.withResolvers<void>();
    const slow: Pick<ValkeyConnection, "run" | "subscribe"> = {
      subscribe: (channel, listener) =>
        connection.subscribe(channel, (message) => {
          listener(message);
          recall();
        }),
      async run(script, keys, parameters) {
        const answer = await connection.run(script, keys, parameters);
        if (script.name === "lease") await recalled;
        return answer;
      },
    };
    const one = new SharedLimits({ ...defaults, connection: slow, workers: () => 2 });
    while (!String(await server.command("PUBSUB", "NUMSUB", leasesChannel)).endsWith(",1")) {
      await Bun.sleep(5);
    }
    expect(await admittedBy(one, 1)).toBe(1);
    // Busy enough for a lease.
    expect(await admittedBy(one, 9)).toBe(9);
    const rest = await other.acquire({ callId: "the rest", scopes, tokens: 1_000_000 - 10 });
    expect(rest.isAdmitted).toBe(true);
  });

  test("a request whose reversal could not be sent is reverted later", async () => {
    await server.command("FLUSHALL");
    let isLate = false;
    const late: Pick<ValkeyConnection, "run" | "subscribe"> = {
      subscribe: () => () => undefined,
      run: async (...sent) => {
        if (isLate) throw notSent("an answer is late");
        return connection.run(...sent);
      },
    };
    const store = new SharedLimits({ ...defaults, connection: late, isLeasing: false });
    const decision = await store.count(scopes);
    if (!decision.isAdmitted) throw new Error("there is room");
    isLate = true;
    store.uncount(decision.counted);
    await nextTurn();
    isLate = false;
    await store.catchUp();
    expect([...(await chargedIn(server)).values()]).toEqual(["0", "0"]);
  });

  test("all of a long guarantee is restored, not only its last minute", async () => {
    await server.command("FLUSHALL");
    const clock = new ManualClock({ monotonicMs: 10_000_000 });
    const own = { connection: steeredBy(clock, connection), clock };
    const store = new SharedLimits({ ...defaults, ...own });
    const guarantee = [
      { id: "key", unit: "tokens", window: { seconds: 600 }, limit: 1_000, owner: "account" },
    ] as const;
    expect((await store.acquire({ callId: "a", scopes: guarantee, tokens: 900 })).isAdmitted).toBe(
      true,
    );
    store.settle("a", 900);
    clock.advance(300_000);
    await server.command("FLUSHALL");
    const more = await store.acquire({ callId: "b", scopes: guarantee, tokens: 200 });
    expect(more.isAdmitted).toBe(false);
  });

  test("an hour in debt is paid in one step, as it is in memory", async () => {
    await server.command("FLUSHALL");
    const clock = new ManualClock({ monotonicMs: 10_000_000 });
    const own = { ...defaults, clock, random: () => 0, reservationTtlMs: 86_400_000 };
    const shared = new SharedLimits({ ...own, connection: steeredBy(clock, connection) });
    const window = { seconds: 3_600 };
    const guarantee = [
      { id: "key", unit: "tokens", window, limit: 3_600, owner: "account" },
    ] as const;
    const [told, expected] = await inTurn([shared, createMemoryLimitStore(own)], async (store) => {
      for (let second = 1; second < window.seconds; second += 1) {
        await store.acquire({ callId: "small", scopes: guarantee, tokens: 1 });
        await store.settle("small", 1);
        clock.advance(1_000);
      }
      await store.acquire({ callId: "large", scopes: guarantee, tokens: 0, mostTokens: 10_000 });
      await store.settle("large", 7_000);
      clock.advance(window.seconds * 1_000);
      return store.acquire({ callId: "next", scopes: guarantee, tokens: 1 });
    });
    expect(told).toMatchObject({ isAdmitted: false, debt: expect.any(Number) });
    expect(told).toEqual(expected);
  });

  test("what calls of a crashed worker could still use is forgotten, and that of running ones is not", async () => {
    await server.command("FLUSHALL");
    const clock = new ManualClock({ monotonicMs: 1_000_000 });
    const own = { connection: steeredBy(clock, connection), clock, reservationTtlMs: 600_000 };
    const [crashed, running, other] = Array.from(
      { length: 3 },
      () => new SharedLimits({ ...defaults, ...own }),
    );
    if (crashed === undefined || running === undefined || other === undefined) return;
    const terms = { owner: "account", overrunFactor: 3 };
    const uncapped = minuteScopes("key", { requestsPerMinute: 100, tokensPerMinute: 1_000 }, terms);
    const begin = (store: SharedLimits, callId: string, mostTokens: number) =>
      store.acquire({ callId, scopes: uncapped, tokens: 0, mostTokens });
    expect((await begin(crashed, "crashed", 2_000)).isAdmitted).toBe(true);
    expect((await begin(running, "running", 1_000)).isAdmitted).toBe(true);
    expect((await begin(other, "too many", 1)).isAdmitted).toBe(false);
    for (let seconds = 0; seconds < 240; seconds += 1) {
      clock.advance(1_000);
      await running.catchUp();
    }
    expect((await begin(other, "too many", 2_001)).isAdmitted).toBe(false);
    expect((await begin(other, "as many as the crashed", 2_000)).isAdmitted).toBe(true);
  });

  for (const random of [0, 0.5, 1]) {
    limitStoreContract(`Valkey, jitter drawn as ${random}`, async (clock) => {
      await server.command("FLUSHALL");
      return new SharedLimits({
        ...defaults,
        // Stores of earlier tests, in another time, must not hear of the leases of this one.
        connection: steeredBy(clock, { run: connection.run.bind(connection) }),
        clock,
        random: drawnAs(random),
        reservationTtlMs: contractReservationTtlMs,
      });
    });
  }
});

const defaults = {
  clock: systemClock,
  random: Math.random,
  reservationTtlMs: 60_000,
  scopeLimit: 1_000,
  workers: () => 1,
  onError(error: unknown) {
    throw error;
  },
};

/** The first draw names the process. */
function drawnAs(random: number): () => number {
  let isNamed = false;
  return () => {
    if (isNamed) return random;
    isNamed = true;
    return Math.random();
  };
}

async function inTurn<Result>(
  stores: readonly LimitStore[],
  run: (store: LimitStore) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const store of stores) results.push(await run(store));
  return results;
}

/** The sums of all windows, by their keys. */
async function chargedIn(server: ValkeyServer): Promise<ReadonlyMap<string, string>> {
  const keys = await server.command("KEYS", "sluice:*:c:*");
  const sums = new Map<string, string>();
  for (const key of Array.isArray(keys) ? keys.map(String).toSorted() : []) {
    const [, sum = ""] = String(await server.command("HGET", key, "m")).split(":");
    sums.set(key, sum);
  }
  return sums;
}

let calls = 0;

async function admittedBy(store: SharedLimits, requests: number): Promise<number> {
  const decisions = await Promise.all(
    Array.from({ length: requests }, async () =>
      store.acquire({ callId: `call ${(calls += 1)}`, scopes, tokens: 1 }),
    ),
  );
  return decisions.filter(({ isAdmitted }) => isAdmitted).length;
}

async function leftIn(store: SharedLimits): Promise<number> {
  const decision = await store.acquire({ callId: "too large", scopes, tokens: 1_000_001 });
  return decision.state.remainingTokens;
}
