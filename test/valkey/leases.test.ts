import { beforeEach, expect, test } from "bun:test";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { nextTurn } from "../../src/domain/waiting/wait.ts";
import type { ValkeyConnection } from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";
import { LimitsWorld, type LimitsWorker } from "../support/limits-world.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const limit = 120;
const scopes = minuteScopes(
  "key",
  { requestsPerMinute: limit, tokensPerMinute: 1_000_000 },
  { owner: "account" },
);

/** Calls of one key, with the times of those that were admitted. */
class Callers {
  readonly world: LimitsWorld;
  readonly admittedAt: number[] = [];
  #calls = 0;

  constructor(connection: ValkeyConnection, workers: number) {
    const settings = { connection, workers, skewMs: 0, isLeasing: true };
    this.world = new LimitsWorld({ ...settings, onRun: () => undefined });
  }

  ask(by: LimitsWorker) {
    this.#calls += 1;
    return by.limits.acquire({ callId: `call ${this.#calls}`, scopes, tokens: 1 });
  }

  /** One call after the other. What the worker sends arrives at once. */
  async admit(by: LimitsWorker, times: number): Promise<void> {
    for (let each = 0; each < times; each += 1) {
      const asked = Promise.resolve(this.ask(by));
      await this.arrive(by);
      if ((await asked).isAdmitted) this.admittedAt.push(this.world.now);
    }
  }

  async arrive(...workers: readonly LimitsWorker[]): Promise<void> {
    let isDone = false;
    while (!isDone) {
      isDone = true;
      await nextTurn();
      for (const worker of workers) if (await this.world.deliver(worker)) isDone = false;
    }
  }
}

describeWithValkey(() => {
  const valkey = valkeyOfTests();
  beforeEach(() => valkey.server.command("FLUSHALL"));

  test("a lease of the previous second that is on its way back is waited for", async () => {
    const callers = new Callers(valkey.connection, 3);
    const { world } = callers;
    const [slow, busy, last] = world.workers;
    if (slow === undefined || busy === undefined || last === undefined) throw new Error("three");
    await callers.admit(busy, 8);
    world.advance(1_800);
    await callers.arrive(busy);
    await callers.admit(busy, 3);
    await callers.admit(slow, 8);
    // Both leases end with the second; what one worker gives back takes its time.
    world.advance(250);
    await callers.arrive(busy);
    expect(slow.messages.map(({ script }) => script.name)).toEqual(["give-back"]);
    await callers.admit(busy, 3);
    const left = limit - callers.admittedAt.length;
    let refused = 0;
    const asking = (async () => {
      for (let call = 0; call < left; call += 1) {
        if (!(await callers.ask(last)).isAdmitted) refused += 1;
      }
      return "done";
    })();
    let outcome: string | undefined;
    void asking.then((done) => (outcome = done));
    for (let ms = 0; outcome === undefined; ms += 1) {
      await callers.arrive(busy, last, ...(ms > 30 ? [slow] : []));
      world.advance(1);
    }
    expect(refused).toBe(0);
  });

  test("a lease ends before its second does, to a fraction of a millisecond", async () => {
    const callers = new Callers(valkey.connection, 1);
    const { world } = callers;
    const [worker] = world.workers;
    if (worker === undefined) throw new Error("a worker is needed");
    world.clock.advance(0.9);
    await callers.admit(worker, 16);
    // The server's second ended 0.2 ms ago.
    world.clock.advance(999.3);
    for (
      let asked = callers.ask(worker);
      !(asked instanceof Promise);
      asked = callers.ask(worker)
    ) {
      callers.admittedAt.push(world.now);
    }
    await world.settle();
    world.advance(1_200);
    await world.settle();
    world.clock.advance(1_061_000 - world.now);
    await callers.admit(worker, limit + 1);
    const inMinute = callers.admittedAt.map(
      (from) => callers.admittedAt.filter((at) => at >= from && at <= from + 60_000).length,
    );
    expect(Math.max(...inMinute)).toBeLessThanOrEqual(limit);
  });
});
