import { describe, expect, test } from "bun:test";
import {
  contractReservationTtlMs,
  limitStoreContract,
} from "../../../../../test/contracts/limit-store-contract.ts";
import { CoordinationWorld } from "../../../../../test/support/coordination-world.ts";
import type { ManualClock } from "../../../../../test/support/manual-clock.ts";
import { minuteScopes } from "../../../../domain/limits/limit-scope.ts";
import type { LimitStore } from "../../../../store/store.ts";

const bounds = { reservationTtlMs: contractReservationTtlMs, scopeLimit: 1_000 };

/** A worker whose messages arrive as soon as it waits for an answer. */
async function storeOver(clock: ManualClock): Promise<LimitStore> {
  const world = new CoordinationWorld({ workers: 2, skewMs: 0, bounds, clock, ledger: () => [] });
  await world.start();
  const [worker] = world.workers;
  if (worker === undefined) throw new Error("there is no worker");
  const { limits } = worker;
  const answered = async <Answer>(answer: Answer | Promise<Answer>): Promise<Answer> => {
    await world.settle();
    return answer;
  };
  return {
    count: (scopes) => answered(limits.count(scopes)),
    acquire: (request) => answered(limits.acquire(request)),
    uncount: async (counted) => {
      void limits.uncount(counted);
      await world.settle();
    },
    use: async (callId, tokens) => {
      void limits.use(callId, tokens);
      await world.settle();
    },
    settle: async (callId, tokens) => {
      void limits.settle(callId, tokens);
      await world.settle();
    },
  };
}

limitStoreContract("control, over a link", storeOver);

describe("while control is gone", () => {
  test("a worker grants its part of what is left, and of a limit of which nothing is left nothing", async () => {
    const world = new CoordinationWorld({ workers: 2, skewMs: 7, bounds, ledger: () => [] });
    await world.start();
    const [first, second] = world.workers;
    const scopes = minuteScopes("key", { requestsPerMinute: 10, tokensPerMinute: 1_000 });
    const count = async (worker: typeof first) => {
      const decision = worker?.limits.count(scopes);
      await world.settle();
      return (await decision)?.isAdmitted;
    };
    expect([await count(first), await count(first), await count(second)]).toEqual([
      true,
      true,
      true,
    ]);
    world.end(world.control);
    await world.settle();
    // Seven are left, of which each worker may grant three.
    const alone: unknown[] = [];
    for (let n = 0; n < 5; n += 1) alone.push(await count(first), await count(second));
    expect(alone).toEqual([true, true, true, true, true, true, false, false, false, false]);
    await world.startControl();
    await world.settle();
    expect([await count(second), await count(first)]).toEqual([true, false]);
    world.advance(62_000);
    expect(await count(first)).toBe(true);
  });
});
