import { expect, test } from "bun:test";
import {
  connectTo,
  describeWithValkey,
  startValkey,
  type ValkeyServer,
} from "../../../../../test/support/valkey-server.ts";
import { systemClock } from "../../../../domain/clock.ts";
import { minuteScopes, type CountedRequest } from "../../../../domain/limits/limit-scope.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { ValkeyUnavailable } from "../connection/valkey-errors.ts";
import { limitScripts } from "./scripts/limit-scripts.ts";
import { epochKey } from "./scope-parameters.ts";
import { SharedLimits } from "./shared-limits.ts";

const limit = 1_000;
const limits = { requestsPerMinute: limit, tokensPerMinute: 1_000_000 };
const scopes = minuteScopes("key", limits, { owner: "account" });

/** What of the scripts of one store arrives. */
type Sends = "everything" | "nothing" | "without an answer";

/** Stores of three workers, which hear of a loss together or one after another. */
async function start(server: ValkeyServer, isLeasing: boolean) {
  const connection = await connectTo(server, { scripts: limitScripts });
  /** Since when data are valid, as far as each worker knows. */
  const heard = { one: 1, other: 1, third: 1 };
  const errors: unknown[] = [];
  let sends: Sends = "everything";
  const failing: Pick<ValkeyConnection, "run" | "subscribe"> = {
    subscribe: (...of) => connection.subscribe(...of),
    async run(...script) {
      const answer = sends === "nothing" ? undefined : await connection.run(...script);
      if (sends !== "everything") throw new ValkeyUnavailable("no answer");
      return answer;
    },
  };
  const newStore = (through: typeof failing, name: keyof typeof heard): SharedLimits =>
    new SharedLimits({
      connection: through,
      clock: systemClock,
      random: Math.random,
      reservationTtlMs: 60_000,
      scopeLimit: 1_000,
      workers: () => 3,
      isLeasing,
      validSince: () => heard[name],
      onError: (error) => void errors.push(error),
    });
  const one = newStore(failing, "one");
  const other = newStore(connection, "other");
  const stores = [one, other, newStore(connection, "third")];
  return {
    one,
    other,
    stores,
    /** Of `one`. */
    sends: (part: Sends): void => void (sends = part),
    /** One worker hears of a loss, before the others. */
    async hears(name: "one" | "other"): Promise<void> {
      heard[name] = 2;
      const store = name === "one" ? one : other;
      store.restore();
      await store.catchUp();
    },
    /** `noticed`: before the stores tell what they have admitted. */
    async restart(noticed: () => unknown = () => undefined): Promise<void> {
      await crashAndStart(server, connection);
      heard.one = heard.other = heard.third = Date.now();
      for (const store of stores) store.restore();
      await noticed();
      await Promise.all(stores.map((store) => store.catchUp()));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((store) => store.end()));
      connection.close();
      expect(errors).toEqual([]);
    },
  };
}

/** With its last snapshot. */
async function crashAndStart(server: ValkeyServer, connection: ValkeyConnection): Promise<void> {
  await server.kill();
  while (connection.isUp) await Bun.sleep(10);
  await server.start();
  while (!connection.isUp) await Bun.sleep(10);
}

async function admittedBy(store: SharedLimits, requests: number): Promise<number> {
  const asked = Array.from({ length: requests }, async () => store.count(scopes));
  const decisions = await Promise.all(asked);
  return decisions.filter(({ isAdmitted }) => isAdmitted).length;
}

describeWithValkey(() => {
  test.each([false, true])(
    "a server that starts with an older snapshot admits nothing again; leases: %p",
    async (isLeasing) => {
      await using server = await startValkey();
      await using all = await start(server, isLeasing);
      const { stores } = all;
      for (const store of stores) expect(await admittedBy(store, 50)).toBe(50);
      await server.command("SAVE");
      // One has told all of its requests by then.
      for (const store of stores.slice(1)) expect(await admittedBy(store, 350)).toBe(350);
      await all.restart();
      const admitted = await Promise.all(stores.map((store) => admittedBy(store, 1_000)));
      expect(admitted.reduce((sum, each) => sum + each, 0)).toBe(150);
    },
  );

  test("a call that the snapshot has is settled as it was charged since", async () => {
    await using server = await startValkey();
    await using all = await start(server, false);
    const { one, other } = all;
    await one.acquire({ callId: "long", scopes, tokens: 100 });
    await server.command("SAVE");
    one.use("long", 300_000);
    await one.catchUp();
    await all.restart();
    expect(await leftIn(other)).toBe(1_000_000 - 300_000);
    one.settle("long", 400_000);
    await one.catchUp();
    expect(await leftIn(other)).toBe(1_000_000 - 400_000);
  });

  test("a request that was restored may be taken back", async () => {
    await using server = await startValkey();
    await using all = await start(server, false);
    const { one, other } = all;
    const counted = await countedBy(one);
    await server.command("SAVE");
    await all.restart();
    expect(await admittedBy(other, limit)).toBe(limit - 1);
    one.uncount(counted);
    await one.catchUp();
    expect(await admittedBy(other, 2)).toBe(1);
  });

  test("a request that was taken back and not restored gives nothing", async () => {
    await using server = await startValkey();
    await using all = await start(server, false);
    const { one, other } = all;
    const counted = await countedBy(one);
    await server.command("FLUSHALL");
    // In the same window, of the same second.
    expect(await admittedBy(other, 1)).toBe(1);
    one.uncount(counted);
    await one.catchUp();
    expect((await admittedBy(one, limit)) + (await admittedBy(other, limit))).toBe(limit - 1);
  });

  test("a lease that the snapshot has gives nothing back", async () => {
    await using server = await startValkey();
    await using all = await start(server, true);
    const { one, other } = all;
    const used = await useUntilLeased(one);
    await server.command("SAVE");
    await all.restart(() => Bun.sleep(1_200));
    expect(await admittedBy(other, limit)).toBe(limit - used);
  });

  test("what is told again after the restart is added again", async () => {
    await using server = await startValkey();
    await using all = await start(server, false);
    const { one, other } = all;
    all.sends("nothing");
    expect(await admittedBy(one, 100)).toBe(100);
    all.sends("without an answer");
    await one.catchUp();
    await server.command("SAVE");
    await all.restart(() => all.sends("everything"));
    expect(await admittedBy(other, limit)).toBe(limit - 100);
  });
});

async function countedBy(store: SharedLimits): Promise<CountedRequest> {
  const decision = await store.count(scopes);
  if (!decision.isAdmitted) throw new Error("it has room");
  return decision.counted;
}

/** Until it need not ask about a request; returns how many it has admitted. */
async function useUntilLeased(store: SharedLimits): Promise<number> {
  let used = 0;
  for (;;) {
    const decision = store.count(scopes);
    used += 1;
    if (!(decision instanceof Promise)) return used;
    await decision;
    used += await admittedBy(store, 20);
  }
}

describeWithValkey(() => {
  test.each([false, true])(
    "a call of a worker that has not heard of the loss is charged for what it uses; leases: %p",
    async (isLeasing) => {
      await using server = await startValkey();
      await using all = await start(server, isLeasing);
      const { one, other } = all;
      await one.acquire({ callId: "first", scopes, tokens: 1 });
      await all.hears("other");
      await other.acquire({ callId: "second", scopes, tokens: 1 });
      const long = isLeasing ? await acquireUnderLease(one) : "long";
      if (!isLeasing) await one.acquire({ callId: long, scopes, tokens: 100 });
      await all.hears("one");
      // Leases have ended by then.
      await Bun.sleep(isLeasing ? 1_300 : 0);
      one.settle(long, 400_000);
      await one.catchUp();
      while ((await leftIn(other)) > 600_000) await Bun.sleep(20);
    },
  );

  test("what a worker told that had not heard of the loss is not added twice", async () => {
    await using server = await startValkey();
    await using all = await start(server, false);
    const { one, other } = all;
    all.sends("nothing");
    expect(await admittedBy(one, 100)).toBe(100);
    await all.hears("other");
    expect(await admittedBy(other, 1)).toBe(1);
    all.sends("without an answer");
    await one.catchUp();
    all.sends("everything");
    await all.hears("one");
    expect(await admittedBy(other, limit)).toBe(limit - 101);
  });

  test("accounts that a gateway of the version before has begun are restored as well", async () => {
    await using server = await startValkey();
    await server.command("SET", epochKey("account"), "old.1");
    await using all = await start(server, false);
    const { one, other } = all;
    expect(await admittedBy(one, 50)).toBe(50);
    await server.command("SAVE");
    expect(await admittedBy(one, 350)).toBe(350);
    await all.restart();
    expect(await admittedBy(other, limit)).toBe(limit - 400);
  });
});

/** Returns the id of the first call about which the store need not ask. */
async function acquireUnderLease(store: SharedLimits): Promise<string> {
  for (let count = 0; ; count += 1) {
    const callId = `call ${count}`;
    const decision = store.acquire({ callId, scopes, tokens: 10 });
    if (!(decision instanceof Promise)) return callId;
    await decision;
  }
}

/** Asked by a request that can never be charged. */
async function leftIn(store: SharedLimits): Promise<number> {
  const asked = { callId: "too large", scopes, tokens: 2_000_000 };
  const { state } = await store.acquire(asked);
  return state.remainingTokens;
}
