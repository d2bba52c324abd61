import { expect, test } from "bun:test";
import { admit, countRequest } from "../../src/admission/admit.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import { Calendar } from "../../src/domain/money/calendar.ts";
import { PublishedPrices } from "../../src/domain/money/price.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import type { ValkeyLimits } from "../../src/store/limits/valkey/limit-store.ts";
import { callerOf, callOf, modelOf, plainWork } from "../support/pipeline-fixtures.ts";
import { clientOf, emptied, limitsOver } from "../support/valkey-limits.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const calendar = new Calendar();
const limit = 1_000;
const scopes = minuteScopes(
  "key",
  { requestsPerMinute: limit, tokensPerMinute: 1_000_000 },
  { owner: "account" },
);

describeWithValkey(() => {
  const of = valkeyOfTests();

  async function withStores(
    count: number,
    body: (all: readonly ValkeyLimits[]) => Promise<void>,
    isLeasing = true,
  ): Promise<void> {
    await emptied(of.server);
    const clients = await Promise.all(Array.from({ length: count }, () => clientOf(of.server)));
    const all = await Promise.all(
      clients.map((client) => limitsOver(client, { processes: () => count, isLeasing })),
    );
    await Promise.all(all.map((store) => store.begin()));
    try {
      await body(all);
    } finally {
      await Promise.all(all.map((store) => store.end()));
      for (const client of clients) client.close();
    }
  }

  test("of 4,000 calls at once over three processes, never more than the limit, and all of it after one retry", async () => {
    await withStores(3, async (all) => {
      const rush = async (calls: number): Promise<number> => {
        const admitted = await Promise.all(all.map((store) => admittedBy(store, calls)));
        return admitted.reduce((sum, each) => sum + each, 0);
      };
      const first = await rush(1_334);
      expect(first).toBeLessThanOrEqual(limit);
      // What was leased and not used comes back when its second has ended.
      await Bun.sleep(1_500);
      expect(first + (await rush(1_000))).toBe(limit);
    });
  });

  test("calls that name end users never use more requests than their key has", async () => {
    const body = async ([limits]: readonly ValkeyLimits[]): Promise<void> => {
      if (limits === undefined) throw new Error("one store is needed");
      const services = { limits, clock: systemClock, prices: new PublishedPrices(), calendar };
      const caller = callerOf({ requestsPerMinute: 20, tokensPerMinute: 1_000_000 });
      const owner = caller.key.accountId;
      const plan = { requestsPerMinute: 100, tokensPerMinute: 100_000 };
      const one = async (number: number): Promise<boolean> => {
        await Bun.sleep(number % 40);
        const call = callOf({ id: `req_${number}`, caller });
        try {
          const counted = await countRequest("call", call, services);
          // Its body is read.
          await Bun.sleep(number % 17);
          const asked = {
            call: { ...call, counted },
            model: modelOf(),
            estimate: { inputTokens: 1, outputTokens: 1 },
            output: { cap: 1, choices: 1 },
            endUser: minuteScopes(`end-user:k:${number}`, plan, { owner }),
            ...plainWork,
          };
          await admit(asked, services);
          return true;
        } catch (error) {
          if (error instanceof GatewayError && error.status === 429) return false;
          throw error;
        }
      };
      const made: boolean[] = [];
      for (let round = 0; round < 4; round += 1) {
        made.push(
          ...(await Promise.all(Array.from({ length: 300 }, (_, at) => one(300 * round + at)))),
        );
      }
      expect(made.filter((isAdmitted) => isAdmitted)).toHaveLength(20);
    };
    await withStores(1, body, false);
  });

  test("a busy key runs few scripts, and is never above its limit", async () => {
    await withStores(1, async ([store]) => {
      if (store === undefined) throw new Error("one store is needed");
      const commands = async (): Promise<number> => {
        const info = String(await of.server.command("INFO", "stats"));
        return Number(/total_commands_processed:(\d+)/.exec(info)?.[1]);
      };
      let calls = 0;
      let admitted = 0;
      const before = await commands();
      const endsAt = performance.now() + 3_500;
      while (performance.now() < endsAt) {
        admitted += await oneCall(store);
        calls += 1;
        await Bun.sleep(5);
      }
      expect(admitted).toBe(Math.min(calls, limit));
      // Without leases, each call runs three scripts of several commands.
      expect((await commands()) - before).toBeLessThan(10 * calls);
    });
  });

  test("a negative or unreadable value is lost, told and counted, and poisons nothing", async () => {
    await emptied(of.server);
    const client = await clientOf(of.server);
    const told: string[] = [];
    const onAccountLost = (account: string, why: string): void =>
      void told.push(`${account}: ${why}`);
    const store = await limitsOver(client, { processes: () => 2, onAccountLost });
    expect(await admittedBy(store, 100)).toBe(100);
    const keys = await of.server.command("KEYS", "sluice:{0}:c*");
    for (const key of Array.isArray(keys) ? keys.map(String) : []) {
      await of.server.command("SET", key, "-5");
    }
    // The share is half of the limit, less what was admitted.
    expect(await admittedBy(store, limit)).toBe(limit / 2 - 100);
    expect(told[0]).toBe("account: a value is unreadable");
    await of.server.command("DEL", "sluice:{0}:since");
    await of.server.command("LPUSH", "sluice:{0}:since", "x");
    await store.tick();
    expect(store.trust.decides).toBe(false);
    client.close();
  });

  test("a store that is full, evicts or runs out of keys never grants more than the shares", async () => {
    await emptied(of.server);
    const client = await clientOf(of.server);
    const store = await limitsOver(client, { processes: () => 2 });
    const other = await limitsOver(client, { processes: () => 2 });
    expect(await admittedBy(store, 900)).toBe(900);
    await of.server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    for (let filler = 0; filler < 200; filler += 1) {
      await of.server.command("SET", `filler ${filler}`, "x".repeat(9_000));
    }
    await of.server.command("CONFIG", "SET", "maxmemory", "1100000");
    for (let filler = 0; filler < 50; filler += 1) {
      // Less than the server itself needs: some writes are refused.
      await of.server.command("SET", `more ${filler}`, "x".repeat(9_000)).catch(() => undefined);
    }
    await of.server.command("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
    // Whether or not the windows of the key are gone, all of the server counts as lost.
    const more = (await admittedBy(store, limit)) + (await admittedBy(other, limit));
    expect(900 + more).toBeLessThanOrEqual(1.5 * limit);
    await store.tick();
    client.close();
  });
});

let calls = 0;

async function oneCall(store: ValkeyLimits): Promise<number> {
  const callId = `call ${(calls += 1)}`;
  const counted = await store.count(scopes);
  if (!counted.isAdmitted) return 0;
  const request = { callId, scopes, tokens: 10, counted: counted.counted };
  const decision = await store.acquire(request);
  await store.settle(callId, 5);
  return decision.isAdmitted ? 1 : 0;
}

async function admittedBy(store: ValkeyLimits, count: number): Promise<number> {
  const asked = Array.from({ length: count }, async () =>
    store.acquire({ callId: `call ${(calls += 1)}`, scopes, tokens: 1 }),
  );
  return (await Promise.all(asked)).filter(({ isAdmitted }) => isAdmitted).length;
}
