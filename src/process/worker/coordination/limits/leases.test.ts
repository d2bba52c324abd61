import { expect, test } from "bun:test";
import { CoordinationWorld } from "../../../../../test/support/coordination-world.ts";
import { minuteScopes } from "../../../../domain/limits/limit-scope.ts";
import type { LimitDecision } from "../../../../store/store.ts";

const bounds = { reservationTtlMs: 600_000, scopeLimit: 1_000 };
const scopes = minuteScopes("key", { requestsPerMinute: 100, tokensPerMinute: 10_000 });

/** Two workers and control, all started at the beginning of a slot. */
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

test("control hears nothing of calls that begin and end under one lease", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  const { limits, asks, notes } = workers.at(0);
  for (let call = 6; call <= 9; call += 1) {
    expect(workers.acquire(0)).not.toBeInstanceOf(Promise);
    void limits.use(`call ${call}`, 8);
    void limits.settle(`call ${call}`, 9);
  }
  expect(workers.at(0)).toMatchObject({ asks, notes });
  workers.world.advance(1_100);
  await workers.world.settle();
  const decision = workers.acquire(1);
  await workers.world.settle();
  // Five calls of 10 tokens, four that used 9, and this one.
  expect(await decision).toMatchObject({
    state: { remainingRequests: 90, remainingTokens: 10_000 - 50 - 36 - 10 },
  });
});

test("what a call used beyond its tokens is charged to its lease", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  const { limits, notes } = workers.at(0);
  void workers.acquire(0);
  void limits.use("call 6", 12);
  void limits.settle("call 6", 15);
  expect(workers.at(0).notes).toBe(notes);
  expect(workers.acquire(0)).toMatchObject({ state: { remainingTokens: 10_000 - 50 - 15 - 10 } });
});

test("control charges what a lease is too small for", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  void workers.acquire(0);
  void workers.at(0).limits.use("call 6", 3_000);
  await workers.world.settle();
  void workers.at(0).limits.settle("call 6", 4_000);
  await workers.world.settle();
  const decision = workers.acquire(1);
  await workers.world.settle();
  expect(await decision).toMatchObject({ state: { remainingTokens: 10_000 - 50 - 4_000 - 10 } });
});

test("a call that outlasts its lease is settled by control", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  for (const _ of [6, 7]) expect(workers.acquire(0)).not.toBeInstanceOf(Promise);
  workers.world.advance(1_100);
  await workers.world.settle();
  void workers.at(0).limits.settle("call 6", 2);
  void workers.at(0).limits.settle("call 7", 30);
  await workers.world.settle();
  const decision = workers.acquire(1);
  await workers.world.settle();
  expect(await decision).toMatchObject({
    state: { remainingRequests: 92, remainingTokens: 10_000 - 50 - 2 - 30 - 10 },
  });
});

test("what calls of a worker that is killed had reserved stays charged", async () => {
  const workers = await new Workers().started();
  await workers.admit(0, 5);
  for (const _ of [6, 7]) expect(workers.acquire(0)).not.toBeInstanceOf(Promise);
  workers.world.end(workers.at(0));
  await workers.world.settle();
  const decision = workers.acquire(1);
  await workers.world.settle();
  const { state } = await decision;
  expect(state.remainingRequests).toBeLessThanOrEqual(92);
  expect(state.remainingTokens).toBeLessThanOrEqual(10_000 - 80);
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
  // It was charged before, so it is still valid.
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
