import { expect, test } from "bun:test";
import { CoordinationWorld } from "../../../../../test/support/coordination-world.ts";
import { minuteScopes } from "../../../../domain/limits/limit-scope.ts";
import type { LimitDecision } from "../../../../store/store.ts";

const bounds = { reservationTtlMs: 600_000, scopeLimit: 1_000 };
const scopes = minuteScopes("key", { requestsPerMinute: 100, tokensPerMinute: 10_000 });

/** Two workers and control, which began with a new slot. */
class Workers {
  readonly world = new CoordinationWorld({ workers: 2, skewMs: 5, bounds, ledger: () => [] });
  #calls = 0;

  async started(): Promise<this> {
    await this.world.start();
    return this;
  }

  at(worker: 0 | 1) {
    const found = this.world.workers[worker];
    if (found === undefined) throw new Error("there is no such worker");
    return found;
  }

  acquire(worker: 0 | 1, tokens = 10): LimitDecision | Promise<LimitDecision> {
    this.#calls += 1;
    return this.at(worker).limits.acquire({ callId: `call ${this.#calls}`, scopes, tokens });
  }

  async admit(worker: 0 | 1, times = 1): Promise<readonly boolean[]> {
    const admitted: boolean[] = [];
    for (let each = 0; each < times; each += 1) {
      const decision = this.acquire(worker);
      await this.world.settle();
      admitted.push((await decision).isAdmitted);
    }
    return admitted;
  }
}

test("a worker that is busy admits calls at once, until the slot ends", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  const { asks } = workers.at(0);
  expect(workers.acquire(0)).toMatchObject({
    isAdmitted: true,
    state: { limitRequests: 100, remainingRequests: 94, remainingTokens: 9_940 },
  });
  expect(workers.at(0).asks).toBe(asks);
  workers.world.advance(1_000);
  expect(workers.acquire(0)).toBeInstanceOf(Promise);
});

test("a key with a call a second has no lease", async () => {
  const workers = await new Workers().started();
  for (let second = 0; second < 5; second += 1) {
    const decision = workers.acquire(0);
    expect(decision).toBeInstanceOf(Promise);
    await workers.world.settle();
    expect(await decision).toMatchObject({
      isAdmitted: true,
      state: { remainingRequests: 99 - second },
    });
    workers.world.advance(1_000);
  }
});

test("what no call got of a lease is free again once its slot has ended", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  workers.world.advance(1_100);
  await workers.world.settle();
  const decision = workers.acquire(1);
  await workers.world.settle();
  expect(await decision).toMatchObject({ state: { remainingRequests: 94 } });
});

test("a lease is recalled before another worker is refused", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  const others = await workers.admit(1, 96);
  expect(others.filter((isAdmitted) => isAdmitted)).toHaveLength(95);
  expect(await workers.admit(0)).toEqual([false]);
});

test("a worker that hangs with a lease delays a refusal only for a moment", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  workers.at(0).isHanging = true;
  let refused: LimitDecision | undefined;
  for (let calls = 0; calls < 97 && refused === undefined; calls += 1) {
    const decision = workers.acquire(1);
    await workers.world.settle();
    const isDecided = await Promise.race([decision, Promise.resolve("waits" as const)]);
    if (isDecided !== "waits") continue;
    workers.world.advance(300);
    await workers.world.settle();
    refused = await decision;
  }
  expect(refused?.isAdmitted).toBe(false);
  // A further one does not wait again.
  expect(await workers.admit(1)).toEqual([false]);
  workers.at(0).isHanging = false;
  workers.world.advance(1_000);
  await workers.world.settle();
  expect(await workers.admit(1)).toEqual([true]);
});

test("workers are told what was granted, and nothing when nothing was", async () => {
  const workers = await new Workers().started();
  const { told } = workers.at(1);
  await workers.admit(0, 5);
  // Each decision and each lease may be a note of its own.
  expect(workers.at(1).told - told).toBeGreaterThan(0);
  const { told: toldOfGrants } = workers.at(1);
  await workers.admit(0, 3);
  for (const call of [1, 2, 3, 6, 7]) void workers.at(0).limits.settle(`call ${call}`, 1);
  await workers.world.settle();
  const refused = workers.acquire(0, 1_000_000);
  await workers.world.settle();
  expect((await refused).isAdmitted).toBe(false);
  workers.world.advance(2_000);
  await workers.world.settle();
  expect(workers.at(1).told).toBe(toldOfGrants);
});

test("a worker that ends in order returns its leases", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  workers.at(0).parts.closing();
  await workers.world.settle();
  workers.world.end(workers.at(0));
  await workers.world.settle();
  expect(await workers.admit(1, 96)).toEqual(Array.from({ length: 96 }, (_, index) => index < 95));
});

test("a request that is uncounted goes back to its lease", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  const { limits } = workers.at(0);
  for (let times = 0; times < 50; times += 1) {
    const counting = limits.count(scopes);
    if (counting instanceof Promise || !counting.isAdmitted) throw new Error("it was not leased");
    void limits.uncount(counting.counted);
  }
  const decision = workers.acquire(0);
  expect(decision).toMatchObject({ state: { remainingRequests: 94 } });
});

test("another control process counts a lease as used, and settles its calls", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  const leased = workers.acquire(0, 10);
  expect(leased).not.toBeInstanceOf(Promise);
  workers.world.end(workers.world.control);
  await workers.world.settle();
  // It was charged before, so it is still good.
  expect(workers.acquire(0, 10)).not.toBeInstanceOf(Promise);
  await workers.world.startControl();
  await workers.world.settle();
  expect(workers.acquire(0)).toBeInstanceOf(Promise);
  await workers.world.settle();
  for (const call of [6, 7]) void workers.at(0).limits.settle(`call ${call}`, 0);
  workers.world.advance(2_000);
  const decision = workers.acquire(1);
  await workers.world.settle();
  const { state } = await decision;
  // Nine calls, and at least one request that was leased.
  expect(state.remainingRequests).toBeLessThan(91);
  expect(state.remainingRequests).toBeGreaterThan(80);
});
