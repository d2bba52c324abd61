import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import {
  startProcess,
  until,
  type SlotProcess,
  type SlotWorldOptions,
} from "../support/shared-slots-world.ts";
import { emptied } from "../support/valkey-limits.ts";
import { describeWithValkey, startValkey, type ValkeyServer } from "../support/valkey-server.ts";

describeWithValkey(() => {
  let server: ValkeyServer;
  beforeAll(async () => {
    server = await startValkey();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(() => emptied(server));

  /** Gateways that share the places of a pool. */
  async function withProcesses(
    count: number,
    options: SlotWorldOptions,
    body: (at: (index: number) => SlotProcess) => Promise<void>,
  ): Promise<void> {
    const processes: SlotProcess[] = [];
    const all = { ...options, processes: count };
    while (processes.length < count) processes.push(await startProcess(server, all));
    try {
      await body((index) => {
        const process = processes[index % count];
        if (process === undefined) throw new Error("there is no process");
        return process;
      });
    } finally {
      for (const process of processes) await process[Symbol.asyncDispose]();
    }
  }

  test("several gateways together take as many places as there are", async () => {
    await withProcesses(3, { pool: { maxInFlight: 10 } }, async (at) => {
      const asked = Array.from({ length: 60 }, (_, index) => at(index).enter());
      const places = (await Promise.all(asked)).filter((place) => place !== undefined);
      expect(places.length).toBe(10);
    });
  });

  test("unused places of one gateway serve another", async () => {
    await withProcesses(2, { pool: { maxInFlight: 40 } }, async (at) => {
      const [one, other] = [at(0), at(1)];
      const first = await one.enter();
      expect(first).toBeDefined();
      // The first gateway has taken some more in advance; all but one can be had.
      const places = await Promise.all(Array.from({ length: 39 }, () => other.enter({}, wait)));
      expect(places.filter((place) => place !== undefined).length).toBe(39);
      expect(await one.enter()).toBeUndefined();
    });
  });

  test("a call that waits at one gateway gets the place that ends at another", async () => {
    await withProcesses(2, { pool: { maxInFlight: 1 } }, async (at) => {
      const [one, other] = [at(0), at(1)];
      const held = await one.enter();
      const waiting = other.enter({}, wait);
      await Bun.sleep(100);
      if (held === undefined) throw new Error("no place");
      one.leave(held);
      expect(await waiting).toBeDefined();
    });
  });

  test("places of an upstream without a pool are shared as well", async () => {
    await withProcesses(3, { upstream: 7 }, async (at) => {
      const asked = Array.from({ length: 30 }, (_, index) => at(index).enter({}, { pool: "" }));
      const places = (await Promise.all(asked)).filter((place) => place !== undefined);
      expect(places.length).toBe(7);
    });
  });

  test("floods of open calls at all gateways leave a key its places at any gateway", async () => {
    const options = { pool: { maxInFlight: 20 }, units: { buyer: 40 } };
    await withProcesses(3, options, async (at) => {
      const all = [at(0), at(1), at(2)];
      const leaveAll = (): void => all.forEach((process) => process.leaveAll());
      const flood = Array.from({ length: 90 }, (_, index) => at(index).enter({}, wait));
      const asked = Array.from({ length: 8 }, (_, index) => at(index).enter(buyer));
      const places = await Promise.all(asked);
      expect(places.filter((place) => place !== undefined).length).toBe(8);
      const inFlight = all.reduce((sum, { held }) => sum + held.size, 0);
      expect(inFlight).toBeLessThanOrEqual(20);
      // The places of the key move to where its calls are.
      leaveAll();
      const again = await Promise.all(Array.from({ length: 8 }, () => at(0).enter(buyer, wait)));
      expect(again.filter((place) => place !== undefined).length).toBe(8);
      const ending = setInterval(leaveAll, 10);
      await Promise.all(flood);
      clearInterval(ending);
    });
  });

  test("an account with many callers at one gateway delays no account at another", async () => {
    await withProcesses(2, { pool: { maxInFlight: 4 } }, async (at) => {
      const [one, other] = [at(0), at(1)];
      let isOver = false;
      const served = { many: 0, single: 0 };
      const caller = async (
        gateway: SlotProcess,
        accountId: keyof typeof served,
      ): Promise<void> => {
        while (!isOver) {
          const place = await gateway.enter({ accountId }, { waitMs: 30_000 });
          if (place === undefined) continue;
          await Bun.sleep(5);
          gateway.leave(place);
          served[accountId] += 1;
          if (served.many + served.single >= 600) isOver = true;
        }
      };
      const many = Array.from({ length: 50 }, () => caller(one, "many"));
      await Promise.all([...many, caller(other, "single")]);
      // On one gateway, the single caller would have a place whenever it asks: a fourth of all.
      expect(served.single).toBeGreaterThan(60);
    });
  });

  test("many accounts at one gateway are not held back by one with many callers at another", async () => {
    const accounts = 10;
    await withProcesses(2, { pool: { maxInFlight: accounts + 1 } }, async (at) => {
      const [one, other] = [at(0), at(1)];
      const served = new Map<string, number>();
      let total = 0;
      const caller = async (gateway: SlotProcess, accountId: string): Promise<void> => {
        while (total < 1_100) {
          const place = await gateway.enter({ accountId }, { waitMs: 30_000 });
          if (place === undefined) continue;
          await Bun.sleep(5);
          gateway.leave(place);
          served.set(accountId, (served.get(accountId) ?? 0) + 1);
          total += 1;
        }
      };
      const small = Array.from({ length: 3 * accounts }, (_, index) =>
        caller(one, `small ${index % accounts}`),
      );
      const large = Array.from({ length: 30 }, () => caller(other, "large"));
      await Promise.all([...small, ...large]);
      // On one gateway, each account would have had an eleventh of all: 100.
      for (let index = 0; index < accounts; index += 1) {
        expect(served.get(`small ${index}`)).toBeGreaterThan(50);
      }
    });
  });

  test("without the server, each process has its share, and no call waits for an answer", async () => {
    await using own = await startValkey();
    const options = { pool: { maxInFlight: 10 }, processes: 2, timeoutMs: 100 };
    await using one = await startProcess(own, options);
    await using other = await startProcess(own, options);
    expect(await one.enter()).toBeDefined();
    await own.kill();
    await until(() => [one, other].every(({ limits }) => !limits.trust.decides));
    await Promise.all(Array.from({ length: 10 }, () => [one.enter(), other.enter()]).flat());
    expect([one.held.size, other.held.size]).toEqual([5, 5]);
    await own.start();
    await until(() => [one, other].every(({ limits }) => limits.trust.answers));
    // The server is new, so it does not decide yet; calls go on within the shares.
    one.leaveAll();
    await Promise.all(Array.from({ length: 10 }, () => one.enter()));
    expect([one.held.size, other.held.size]).toEqual([5, 5]);
  });

  test("a gateway that ends gives everything back", async () => {
    const one = await startProcess(server, { pool: { maxInFlight: 5 } });
    const two = await startProcess(server, { pool: { maxInFlight: 5 } });
    await one.enter();
    one.leaveAll();
    await one[Symbol.asyncDispose]();
    const places = await Promise.all(Array.from({ length: 5 }, () => two.enter()));
    expect(places.every((place) => place !== undefined)).toBe(true);
    await two[Symbol.asyncDispose]();
    await until(() => two.held.size === 5);
  });
});

const wait = { waitMs: 10_000 };
const buyer = {
  keyId: "buyer",
  accountId: "buyer",
  capacityClass: "provisioned",
  provisionedPool: "shared",
} as const;
