import { drainMicrotasks } from "bun:jsc";
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Capacity, type CapacityOptions } from "../../src/admission/capacity/capacity.ts";
import type { EnterResult, Place } from "../../src/admission/capacity/place.ts";
import { Member } from "../../src/process/control/coordination/member.ts";
import { PlaceCoordination } from "../../src/process/control/coordination/place-coordination.ts";
import type { PlaceDesk } from "../../src/process/control/coordination/place-desk.ts";
import { RemoteCapacity } from "../../src/process/worker/coordination/places/remote-capacity.ts";
import { ConcurrencyLimit } from "../../src/routing/health/concurrency-limit.ts";
import type { Snapshot } from "../../src/snapshot/snapshot.ts";
import { ProcessClock, VirtualTime } from "../simulation/virtual-time.ts";
import { plainPool } from "../support/capacity-world.ts";
import { MemoryLink } from "../support/memory-link.ts";
import { plainRouting, snapshotOf, targetOf, upstreamOf } from "../support/pipeline-fixtures.ts";
import { runsOf } from "../support/requirement.ts";

type Step =
  | {
      kind: "ask";
      worker: number;
      account: string;
      isPooled: boolean;
      waitMs: number;
      times: number;
    }
  | { kind: "more"; which: number; waitMs: number }
  | { kind: "end" | "leave"; which: number }
  | { kind: "pass"; ms: number }
  | { kind: "kill worker"; worker: number }
  | { kind: "kill control"; restartMs: number };

const upstreamPlaces = 7;
const poolPlaces = 5;
const accounts = ["a", "b", "c"];
const worker = fc.nat(2);
const which = fc.nat(40);
const waitMs = fc.constantFrom(0, 0, 100, 2_000, 600_000);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      worker,
      account: fc.constantFrom(...accounts),
      isPooled: fc.boolean(),
      waitMs,
      times: fc.constantFrom(1, 1, 2, 8),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("more" as const), which, waitMs }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("end" as const, "leave" as const), which }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(0, 2, 2, 50, 105, 105, 3_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill worker" as const), worker }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("kill control" as const),
      // Before workers know that it is gone, or after.
      restartMs: fc.constantFrom(1, 100, 100),
    }),
  },
);
const history = fc.record({
  workers: fc.integer({ min: 1, max: 3 }),
  steps: fc.array(step, { minLength: 5, maxLength: 90 }),
});

/** Time of a message on its way, and until a worker knows that control is gone. */
const hopMs = 1;
const goneMs = 5;

interface Call {
  readonly worker: Worker;
  readonly isPooled: boolean;
  readonly caller: AbortController;
  result: EnterResult | undefined;
  place: Place | undefined;
  /** Requests under way at the upstream beyond the first. */
  further: number;
}

interface Worker {
  readonly capacity: RemoteCapacity;
  readonly way: MemoryLink;
  isAlive: boolean;
}

interface Control {
  readonly coordination: PlaceCoordination;
  readonly members: Map<Worker, { readonly member: Member; readonly desk: PlaceDesk }>;
  hasBegun: boolean;
}

/** Control and workers, any of which may be killed, with every call that holds or waits. */
class Cluster {
  readonly #time = new VirtualTime();
  readonly #clock = new ProcessClock(this.#time, { monotonicMs: 70_000, wallMs: 1e12 });
  readonly #calls: Call[] = [];
  readonly #size: number;
  readonly #workers: Worker[] = [];
  readonly #snapshot: Snapshot;
  #control: Control | undefined;

  constructor(size: number) {
    this.#size = size;
    const up = upstreamOf("up", { maxInFlight: upstreamPlaces });
    const pool = { ...plainPool, maxInFlight: poolPlaces, tokensPerMinute: 1e9 };
    this.#snapshot = { ...snapshotOf([up]), pools: new Map([["shared", pool]]) };
    for (let index = 0; index < size; index += 1) this.#workers.push(this.#newWorker(index + 1));
    this.#startControl();
    this.#pass(0);
  }

  run(next: Step): void {
    switch (next.kind) {
      case "ask":
        for (let time = 0; time < next.times; time += 1) this.#ask(next);
        break;
      case "more":
        this.#more(this.#holding()[next.which], next.waitMs);
        break;
      case "end":
        this.#end(this.#holding()[next.which]);
        break;
      case "leave":
        this.#calls[next.which]?.caller.abort();
        break;
      case "pass":
        this.#pass(next.ms);
        break;
      case "kill worker":
        this.#killWorker(next.worker % this.#size);
        break;
      case "kill control":
        this.#killControl(next.restartMs);
        break;
    }
    this.#pass(0);
    this.#check();
  }

  /** All calls end; none may be forgotten, and no place lost. */
  finish(): void {
    for (let round = 0; round < 60; round += 1) {
      for (const call of this.#holding()) this.#end(call);
      this.#pass(round < 50 ? 200 : 61_000);
      this.#check();
    }
    for (const call of this.#calls) {
      if (call.worker.isAlive) expect(call.result).toBeDefined();
    }
    for (const view of this.#control?.coordination.capacity.views() ?? []) {
      expect([view.name, ...Object.values(view.inFlight)]).toEqual([view.name, 0, 0, 0]);
      expect([view.name, ...Object.values(view.queued)]).toEqual([view.name, 0, 0, 0]);
    }
    const up = upstreamOf("up");
    expect(this.#control?.coordination.capacity.at(up).places.count).toBe(0);
    for (const { capacity } of this.#workers) expect(capacity.at(up).places.count).toBe(0);
  }

  #ask({ worker, account, isPooled, waitMs }: Extract<Step, { kind: "ask" }>): void {
    const at = this.#workers[worker % this.#size];
    if (at === undefined) return;
    const caller = new AbortController();
    const call: Call = {
      worker: at,
      isPooled,
      caller,
      result: undefined,
      place: undefined,
      further: 0,
    };
    this.#calls.push(call);
    const target = targetOf("up", isPooled ? { id: "up/pool", pool: "shared" } : {});
    const entering = at.capacity.enter({
      request: {
        callId: `call ${this.#calls.length}`,
        keyId: account,
        accountId: account,
        capacityClass: "on-demand",
        provisionedPool: undefined,
        tokens: 1,
      },
      candidates: [{ target }],
      snapshot: this.#snapshot,
      signal: caller.signal,
      waitMs,
    });
    entering.then(
      (result) => {
        call.result = result;
        if (!("place" in result) || !at.isAlive) return;
        call.place = result.place;
        expect(result.place.tryOpen()).toBe(true);
        if (caller.signal.aborted) this.#end(call);
      },
      (error: unknown) => {
        if (at.isAlive) throw error;
      },
    );
  }

  #more(call: Call | undefined, waitMs: number): void {
    const { place } = call ?? {};
    if (call === undefined || place === undefined) return;
    const { signal: callerSignal } = call.caller;
    void place.whenOpen({ callerSignal, waitMs, clock: this.#clock }).then((isOpen) => {
      if (!isOpen || !call.worker.isAlive) return;
      if (call.place === undefined) place.close();
      else call.further += 1;
    });
  }

  #end(call: Call | undefined): void {
    const { place } = call ?? {};
    if (call === undefined || place === undefined) return;
    call.place = undefined;
    for (; call.further > 0; call.further -= 1) place.close();
    place.close();
    place.settle(1);
    place.leave();
  }

  #holding(): readonly Call[] {
    return this.#calls.filter(({ place }) => place !== undefined);
  }

  #check(): void {
    const held = this.#holding();
    const further = held.reduce((sum, call) => sum + call.further, 0);
    expect(held.length + further).toBeLessThanOrEqual(upstreamPlaces);
    expect(held.filter(({ isPooled }) => isPooled).length).toBeLessThanOrEqual(poolPlaces);
  }

  #pass(ms: number): void {
    drainMicrotasks();
    const untilMs = this.#time.now + ms;
    this.#time.schedule(() => undefined, ms);
    this.#time.runUntil(() => false, { untilMs, steps: Infinity });
  }

  #newWorker(number: number): Worker {
    const way = new MemoryLink({ later: (run) => void this.#time.schedule(run, hopMs) });
    const own = new Capacity(this.#options());
    const parts = { link: way.link, clock: this.#clock, own, workers: this.#size, number };
    const capacity = new RemoteCapacity(parts);
    capacity.follow(this.#snapshot);
    return { capacity, way, isAlive: true };
  }

  #killWorker(index: number): void {
    const dead = this.#workers[index];
    if (dead === undefined) return;
    dead.isAlive = false;
    for (const call of this.#calls) if (call.worker === dead) call.place = undefined;
    const control = this.#control;
    dead.way.lose();
    const { desk } = control?.members.get(dead) ?? {};
    control?.members.delete(dead);
    // Control hears of it when it has read all that the worker wrote.
    this.#time.schedule(() => desk?.end(), 2 * hopMs);
    const born = this.#newWorker(index + 1);
    this.#workers[index] = born;
    if (control !== undefined) this.#connect(control, born);
    else this.#planAlone(born);
  }

  #killControl(restartMs: number): void {
    if (this.#control === undefined) return;
    this.#control = undefined;
    for (const worker of this.#workers) {
      worker.way.lose();
      // A worker has read by then all that control wrote.
      worker.capacity.lost();
      this.#planAlone(worker);
    }
    this.#time.schedule(() => this.#startControl(), restartMs);
  }

  #planAlone({ capacity }: Worker): void {
    this.#time.schedule(() => {
      if (this.#control === undefined) capacity.alone();
    }, goneMs);
  }

  #startControl(): void {
    const { pools, upstreams } = this.#snapshot;
    const control: Control = {
      coordination: new PlaceCoordination({
        ...this.#options(),
        workers: this.#size,
        config: { pools, upstreams, routing: { ...plainRouting, queueLimit: 1_000 } },
      }),
      members: new Map(),
      hasBegun: false,
    };
    this.#control = control;
    for (const each of this.#workers) this.#connect(control, each);
  }

  #connect(control: Control, worker: Worker): void {
    const { way, capacity } = worker;
    const member = new Member(({ places = [] }) => desk.adopt(places));
    const desk = control.coordination.newDesk({
      when: (decide) => member.when(decide),
      tellLent: (lent) => way.tellBack(() => capacity.lent(lent)),
    });
    control.members.set(worker, { member, desk });
    way.connect(desk.handlers);
    const reported = way.askBack(() => capacity.report());
    void reported.then(
      (report) => {
        member.report = report;
        this.#decide(control);
      },
      () => undefined,
    );
  }

  /** Control decides once all workers have reported; for one that comes later, at once. */
  #decide(control: Control): void {
    const members = [...control.members.values()].map(({ member }) => member);
    if (!control.hasBegun && members.some(({ report }) => report === undefined)) return;
    control.hasBegun = true;
    const reported = members.filter(({ isAdmitted }) => !isAdmitted);
    for (const member of reported) if (member.report) member.takeOver(member.report);
    for (const member of reported) if (member.report) member.admit();
  }

  #options(): CapacityOptions {
    const limits = new Map<string, ConcurrencyLimit>();
    return {
      clock: this.#clock,
      limits: { acquire: () => ({ isAdmitted: true, state }), settle: () => undefined },
      settings: () => ({ queueLimit: 1_000 }),
      units: { holdings: () => new Map(), unitsOf: () => 0 },
      limitOf: (id) => {
        const limit = limits.get(id) ?? new ConcurrencyLimit();
        limits.set(id, limit);
        return limit;
      },
    };
  }
}

const state = {
  limitRequests: Infinity,
  remainingRequests: Infinity,
  limitTokens: undefined,
  remainingTokens: undefined,
  resetRequestsMs: 0,
  resetTokensMs: 0,
} as never;

test("whoever dies, no more places are held than there are, none is lost, and no call is forgotten", () => {
  fc.assert(
    fc.property(history, ({ workers, steps }) => {
      const cluster = new Cluster(workers);
      for (const next of steps) cluster.run(next);
      cluster.finish();
    }),
    { numRuns: runsOf(1_500) },
  );
}, 120_000);
