import { drainMicrotasks } from "bun:jsc";
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Capacity, type CapacityOptions } from "../../src/admission/capacity/capacity.ts";
import type { EnterResult, Place } from "../../src/admission/capacity/place.ts";
import { Member } from "../../src/process/control/coordination/member.ts";
import { PlaceCoordination } from "../../src/process/control/coordination/place-coordination.ts";
import type { PlaceDesk } from "../../src/process/control/coordination/place-desk.ts";
import type {
  PlaceId,
  WireEntered,
  WireLeave,
  WirePlaceAsk,
} from "../../src/process/link/place-wire.ts";
import type { CoordinationLink } from "../../src/process/worker/coordination/coordination-link.ts";
import { RemoteCapacity } from "../../src/process/worker/coordination/places/remote-capacity.ts";
import { RemotePlace } from "../../src/process/worker/coordination/places/remote-place.ts";
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
      thenMs: number;
    }
  | { kind: "more"; which: number; waitMs: number }
  | { kind: "end" | "again" | "leave"; which: number }
  | { kind: "end all"; worker: number }
  | { kind: "pass"; ms: number }
  | { kind: "kill worker"; worker: number }
  | { kind: "kill control"; restartMs: number };

/** At the upstream, and in the pool. */
const sizes = [
  { upstream: 7, pool: 5 },
  { upstream: 30, pool: 20 },
] as const;
const roomy = { upstream: 200, pool: 100 };
const accounts = ["a", "b", "guaranteed"];
const poolTokens = 1_000_000;
/** Two places of five. */
const soldUnits = 400;
/** Time of a message on its way, and until a worker knows that control is gone. */
const hopMs = 1;
const goneMs = 5;
const worker = fc.nat(2);
const which = fc.nat(40);
const waitMs = fc.constantFrom(0, 0, 100, 2_000, 600_000);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      worker,
      account: fc.constantFrom(...accounts),
      isPooled: fc.constantFrom(true, false, false),
      waitMs,
      times: fc.constantFrom(1, 1, 1, 2, 2, 8, 30),
      thenMs: fc.constantFrom(0, 2 * hopMs),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("more" as const), which, waitMs }) },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constantFrom("end" as const, "again" as const, "again" as const, "leave" as const),
      which,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(0, 2, 2, 2, 2, 10, 50, 105, 3_000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("end all" as const), worker }) },
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
  places: fc.constantFrom(...sizes, roomy),
  steps: fc.array(step, { minLength: 15, maxLength: 90 }),
});

interface Call {
  readonly asked: Extract<Step, { kind: "ask" }>;
  readonly worker: Worker;
  readonly isPooled: boolean;
  /** Within a guarantee of the pool, to which the limit of the upstream does not apply. */
  readonly isUnbound: boolean;
  readonly caller: AbortController;
  readonly askedAt: number;
  result: EnterResult | undefined;
  place: Place | undefined;
  /** Requests under way at the upstream beyond the first. */
  further: number;
}

interface Worker {
  readonly capacity: RemoteCapacity;
  readonly way: MemoryLink;
  /** Its places that control counts, as far as it knows. */
  readonly counted: Set<PlaceId>;
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
  readonly #places: typeof roomy;
  #control: Control | undefined;
  #diedAt = 0;
  /** Calls that began without a message. */
  begunAtOnce = 0;

  constructor(size: number, places: typeof roomy) {
    this.#size = size;
    this.#places = places;
    const up = upstreamOf("up", { maxInFlight: places.upstream });
    const pool = { ...plainPool, maxInFlight: places.pool, tokensPerMinute: poolTokens };
    this.#snapshot = { ...snapshotOf([up]), pools: new Map([["shared", pool]]) };
    for (let index = 0; index < size; index += 1) this.#workers.push(this.#newWorker(index + 1));
    this.#startControl();
    this.#pass(0);
  }

  run(next: Step): void {
    switch (next.kind) {
      case "ask":
        for (let time = 0; time < next.times; time += 1) this.#ask(next);
        this.#pass(next.thenMs);
        break;
      case "more":
        this.#more(this.#holds(next.which), next.waitMs);
        break;
      case "end":
        this.#end(this.#holds(next.which));
        break;
      case "again": {
        const call = this.#holds(next.which);
        this.#end(call);
        if (call !== undefined) this.#ask({ ...call.asked, times: 1, waitMs: 0 });
        break;
      }
      case "end all":
        for (const call of this.#holding()) {
          if (call.worker === this.#workers[next.worker % this.#size]) this.#end(call);
        }
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

  #ask(asked: Extract<Step, { kind: "ask" }>): void {
    const { worker, account, isPooled, waitMs } = asked;
    const at = this.#workers[worker % this.#size];
    if (at === undefined) return;
    const caller = new AbortController();
    const call: Call = {
      asked,
      worker: at,
      isPooled,
      isUnbound: isPooled && account === "guaranteed",
      caller,
      askedAt: this.#time.now,
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
        capacityClass: account === "guaranteed" ? "provisioned" : "on-demand",
        provisionedPool: account === "guaranteed" ? "shared" : undefined,
        tokens: 1,
      },
      candidates: [{ target }],
      snapshot: this.#snapshot,
      signal: caller.signal,
      waitMs,
    });
    if (!(entering instanceof Promise)) this.begunAtOnce += 1;
    Promise.resolve(entering).then(
      (result) => {
        call.result = result;
        if (!at.isAlive || !("place" in result)) return;
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

  /** Nobody is refused while a place is kept that no call uses. */
  #checked(enter: PlaceDesk["handlers"]["places.enter"]): typeof enter {
    const check = (answer: WireEntered): WireEntered => {
      const isFull = answer[1].some(([why]) => why === "full" || why === "deadline");
      if (isFull) expect(this.#idle()).toEqual([]);
      return answer;
    };
    return (ask) => {
      const answer = enter(ask);
      return answer instanceof Promise ? answer.then(check) : check(answer);
    };
  }

  /** Nobody waits, either, once all have been asked for what they keep. */
  #checkWaiting(): void {
    const { now } = this.#time;
    if (now - this.#diedAt < 200) return;
    const waits = ({ worker, result, askedAt }: Call): boolean =>
      worker.isAlive && result === undefined && now - askedAt > 10 * hopMs;
    if (this.#calls.some(waits)) expect(this.#idle()).toEqual([]);
  }

  /** Places that control counts and no call uses. */
  #idle(): readonly PlaceId[] {
    return this.#workers.flatMap((worker) => [
      ...worker.counted.difference(new Set(this.#usedBy(worker))),
    ]);
  }

  #usedBy(worker: Worker): readonly PlaceId[] {
    return this.#holding().flatMap(({ worker: at, place }) =>
      at === worker && place instanceof RemotePlace ? [place.held.id] : [],
    );
  }

  #holds(which: number): Call | undefined {
    const holding = this.#holding();
    return holding[which % holding.length];
  }

  #holding(): readonly Call[] {
    return this.#calls.filter(({ place }) => place !== undefined);
  }

  #check(): void {
    const held = this.#holding();
    const bound = held.filter(({ isUnbound }) => !isUnbound);
    const requests = bound.reduce((sum, call) => sum + 1 + call.further, 0);
    expect(requests).toBeLessThanOrEqual(this.#places.upstream);
    expect(held.filter(({ isPooled }) => isPooled).length).toBeLessThanOrEqual(this.#places.pool);
    this.#checkWaiting();
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
    const counted = new Set<PlaceId>();
    const link = countingLink(way.link, counted);
    const parts = { link, clock: this.#clock, own, workers: this.#size, number };
    const capacity = new RemoteCapacity(parts);
    capacity.follow(this.#snapshot);
    return { capacity, way, counted, isAlive: true };
  }

  #killWorker(index: number): void {
    const dead = this.#workers[index];
    if (dead === undefined) return;
    this.#diedAt = this.#time.now;
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
    this.#diedAt = this.#time.now;
    for (const worker of this.#workers) {
      worker.way.lose();
      // A worker has read by then all that control wrote.
      worker.capacity.lost();
      drainMicrotasks();
      worker.counted.clear();
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
    // The timers of a control process end with it.
    const tell = (note: () => void): void => {
      if (this.#control === control) way.tellBack(note);
    };
    const desk = control.coordination.newDesk({
      when: (decide) => member.when(decide),
      tellLent: (lent) => tell(() => capacity.lent(lent)),
      askScarce: (bounds) => way.askBack(() => capacity.scarce(bounds)),
      tellPlenty: (bounds) => tell(() => capacity.plenty(bounds)),
    });
    control.members.set(worker, { member, desk });
    const { handlers } = desk;
    way.connect({ ...handlers, "places.enter": this.#checked(handlers["places.enter"]) });
    const reported = way.askBack(() => {
      const report = capacity.report();
      worker.counted.clear();
      for (const { id } of report.places ?? []) worker.counted.add(id);
      return report;
    });
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
      units: {
        holdings: () => new Map([[soldUnits, 1]]),
        unitsOf: (_, keyId) => (keyId === "guaranteed" ? soldUnits : 0),
      },
      limitOf: (id) => {
        const limit = limits.get(id) ?? new ConcurrencyLimit();
        limits.set(id, limit);
        return limit;
      },
    };
  }
}

/** Notes which places control counts, as far as the worker knows. */
function countingLink(link: CoordinationLink, counted: Set<PlaceId>): CoordinationLink {
  const left = new Set<PlaceId>();
  return {
    ...link,
    async ask(kind, body) {
      const answer = await link.ask(kind, body);
      if (kind !== "places.enter") return answer;
      const [id] = body as WirePlaceAsk;
      if ((answer as WireEntered)[0] >= 0 && !left.has(id)) counted.add(id);
      return answer;
    },
    tell(kind, body) {
      if (kind === "places.leave") {
        const [id] = body as WireLeave;
        counted.delete(id);
        left.add(id);
      }
      link.tell(kind, body);
    },
  };
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
  let begunAtOnce = 0;
  fc.assert(
    fc.property(history, ({ workers, places, steps }) => {
      const cluster = new Cluster(workers, places);
      for (const next of steps) cluster.run(next);
      cluster.finish();
      begunAtOnce += cluster.begunAtOnce;
    }),
    { numRuns: runsOf(1_500) },
  );

  expect(begunAtOnce).toBeGreaterThan(0);
}, 120_000);
