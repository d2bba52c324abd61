import { describe, expect, test } from "bun:test";
import { randomOf } from "../../../test/contracts/usage-fixtures.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { OverloadGuard } from "./overload.ts";

const settings = { loopDelayMs: 100, maxCalls: 20_000 };
const noEvents = {
  measureDelay: () => undefined,
  callRefused: () => undefined,
  changed: () => undefined,
};
const classes = ["provisioned", "on-demand", "spillover"] as const;
type ByClass = Record<CapacityClass, number>;
const none: Readonly<ByClass> = { provisioned: 0, "on-demand": 0, spillover: 0 };

/** How many connections the runtime reads in one turn of the loop. */
const readAtOnce = 1_024;

interface SimulatedLoad {
  readonly seconds: number;
  /** Calls per second. */
  readonly rates: Partial<ByClass>;
}

/** Loop time of a call and of a refusal: at most 2,500 calls a second. */
const callMs = 0.4;
const refusalMs = 0.04;
const capacity = 1_000 / callMs;
const upstreamMs = 5;

/**
 * A process whose event loop needs time for its work: each turn reads what has arrived, decides,
 * and continues calls whose upstream has answered. Time is simulated, so every run is the same.
 */
class SimulatedProcess {
  readonly guard: OverloadGuard;
  readonly random = randomOf(5);
  readonly connections: number;
  readonly changes: boolean[] = [];
  measuredMs: () => number = () => 0;
  answered: ByClass = { ...none };
  refused: ByClass = { ...none };
  /** Length of the longest turn since it was set. */
  longestTurnMs = 0;
  #now = 0;
  #timer: { readonly at: number; readonly run: () => void } | undefined;
  #waiting: CapacityClass[] = [];
  #running: { readonly of: CapacityClass; readonly doneAt: number }[] = [];
  #due: ByClass = { ...none };

  constructor(connections = 3_000) {
    this.connections = connections;
    this.guard = new OverloadGuard({
      clock: {
        monotonic: () => this.#now,
        schedule: (run, delayMs) => {
          this.#timer = { at: this.#now + delayMs, run };
          return () => (this.#timer = undefined);
        },
      },
      random: this.random,
      settings: () => settings,
      callsUnderWay: () => this.#running.length + 1,
      events: {
        ...noEvents,
        changed: (isShedding) => this.changes.push(isShedding),
        measureDelay: (delayMs) => (this.measuredMs = delayMs),
      },
    });
    this.guard.start();
  }

  run({ seconds, rates }: SimulatedLoad): void {
    this.answered = { ...none };
    this.refused = { ...none };
    this.longestTurnMs = 0;
    const endsAt = this.#now + seconds * 1_000;
    while (this.#now < endsAt) {
      const beganAt = this.#now;
      this.#turn();
      this.longestTurnMs = Math.max(this.longestTurnMs, this.#now - beganAt);
      this.#now = Math.max(this.#now, beganAt + 1);
      this.#arrive(rates, this.#now - beganAt);
    }
  }

  /** One pause of the whole process. */
  pause(milliseconds: number): void {
    this.#now += milliseconds;
  }

  #arrive(rates: Partial<ByClass>, elapsedMs: number): void {
    for (const each of classes) {
      this.#due[each] += ((rates[each] ?? 0) * elapsedMs) / 1_000;
      for (; this.#due[each] >= 1; this.#due[each] -= 1) {
        // Callers without a free connection wait elsewhere.
        if (this.#waiting.length + this.#running.length < this.connections) {
          this.#waiting.push(each);
        }
      }
    }
  }

  #turn(): void {
    const turnAt = this.#now;
    for (const each of this.#waiting.splice(0, readAtOnce)) this.#decide(each);
    const done = this.#running.findIndex(({ doneAt }) => doneAt > turnAt);
    const answered = this.#running.splice(0, done === -1 ? this.#running.length : done);
    for (const { of } of answered) this.answered[of] += 1;
    this.#now += (answered.length * callMs) / 2;
    if (this.#timer !== undefined && this.#timer.at <= this.#now) this.#timer.run();
  }

  #decide(each: CapacityClass): void {
    const key = { provisionedUnits: each === "on-demand" ? 0 : 1 };
    if (this.guard.refusesUnread(key) || this.guard.refusesAdmitted(key, each)) {
      this.refused[each] += 1;
      this.#now += refusalMs;
    } else {
      this.#now += callMs / 2;
      this.#running.push({ of: each, doneAt: this.#now + upstreamMs });
    }
  }
}

describe("the loop's delay", () => {
  test("refuses no calls while there is time, nor after a single pause", () => {
    const process = new SimulatedProcess();
    process.run({ seconds: 10, rates: { "on-demand": capacity * 0.8 } });
    expect(process.refused).toEqual(none);
    expect(process.measuredMs()).toBeLessThan(settings.loopDelayMs);
    process.pause(300);
    process.run({ seconds: 2, rates: { "on-demand": capacity * 0.5 } });
    expect(process.refused).toEqual(none);
    expect(process.changes).toEqual([]);
    expect(process.measuredMs()).toBeGreaterThan(250);
  });

  test("keeps three times the load from taking the work that can be done, and settles", () => {
    const process = new SimulatedProcess();
    process.run({ seconds: 10, rates: { "on-demand": capacity * 3 } });
    const answered: number[] = [];
    for (let second = 0; second < 20; second += 1) {
      process.run({ seconds: 1, rates: { "on-demand": capacity * 3 } });
      // A refusal costs a tenth of a call here, so more than this cannot be had while it keeps up.
      expect(process.answered["on-demand"]).toBeGreaterThan(capacity * 0.7);
      expect(process.longestTurnMs).toBeLessThan(2 * settings.loopDelayMs);
      answered.push(process.answered["on-demand"]);
    }
    // The bound does not swing between too low and too high.
    expect(Math.max(...answered) - Math.min(...answered)).toBeLessThan(capacity * 0.15);
  });

  test("admits all calls again within five seconds of the end of the load", () => {
    const process = new SimulatedProcess();
    process.run({ seconds: 20, rates: { "on-demand": capacity * 3 } });
    expect(process.changes).toEqual([true]);
    process.run({ seconds: 5, rates: { "on-demand": capacity * 0.5 } });
    process.run({ seconds: 5, rates: { "on-demand": capacity * 0.5 } });
    expect(process.refused).toEqual(none);
    process.run({ seconds: 1, rates: {} });
    expect(process.changes).toEqual([true, false]);
  });

  test("refuses no provisioned call while others can be refused instead", () => {
    const process = new SimulatedProcess();
    const rates = { provisioned: capacity * 0.5, "on-demand": capacity * 3 };
    process.run({ seconds: 30, rates });
    expect(process.refused.provisioned).toBe(0);
    expect(process.answered.provisioned).toBeGreaterThan(capacity * 0.5 * 29);
    expect(process.refused["on-demand"]).toBeGreaterThan(capacity);
  });

  test("refuses spillover before anything on-demand", () => {
    const process = new SimulatedProcess();
    const rates = { spillover: capacity * 0.6, "on-demand": capacity * 0.7 };
    process.run({ seconds: 5, rates });
    process.run({ seconds: 20, rates });
    expect(process.refused.spillover).toBeGreaterThan(capacity);
    expect(process.refused["on-demand"]).toBeLessThan(process.refused.spillover / 20);
  });

  test("refuses provisioned calls too when there is nothing else and they are far too many", () => {
    const process = new SimulatedProcess(100_000);
    const longest: number[] = [];
    for (let second = 0; second < 30; second += 1) {
      process.run({ seconds: 1, rates: { provisioned: capacity * 30 } });
      longest.push(process.longestTurnMs);
    }
    // Turns end at 1,024 connections here, so the delay is never many times its target.
    expect(Math.max(...longest)).toBeLessThan(8 * settings.loopDelayMs);
    expect(process.refused.provisioned).toBe(0);
    // Only if each turn takes so long that all other classes are refused.
    for (let turn = 0; turn < 20; turn += 1) {
      process.pause(15 * settings.loopDelayMs);
      process.run({ seconds: 0.01, rates: { provisioned: capacity } });
    }
    expect(process.refused.provisioned).toBeGreaterThan(0);
  });
});

test("a few calls are not what keeps the loop busy: none of them is refused", () => {
  let now = 0;
  let calls = 32;
  let measure = (): void => undefined;
  const guard = new OverloadGuard({
    clock: {
      monotonic: () => now,
      schedule: (run) => {
        measure = run;
        return () => undefined;
      },
    },
    random: () => 0,
    settings: () => settings,
    callsUnderWay: () => calls,
    events: noEvents,
  });
  guard.start();
  const refused = (): boolean => guard.refusesUnread({ provisionedUnits: 0 });
  for (let turn = 0; turn < 50; turn += 1) {
    now += 5_000;
    expect(refused()).toBe(false);
    measure();
  }
  calls = 33;
  now += 5_000;
  expect(refused()).toBe(true);
});

test("a pause or two refuse none of many calls that are under way, a loop that stays late does", () => {
  let now = 0;
  let measure = (): void => undefined;
  const guard = new OverloadGuard({
    clock: {
      monotonic: () => now,
      schedule: (run) => {
        measure = run;
        return () => undefined;
      },
    },
    random: () => 0,
    settings: () => settings,
    callsUnderWay: () => 1_000,
    events: noEvents,
  });
  guard.start();
  const refusals: boolean[] = [];
  for (const lateMs of [120, 120, 0, 120, 120, 120]) {
    now += 60 + lateMs;
    measure();
    refusals.push(guard.refusesUnread({ provisionedUnits: 0 }));
  }
  expect(refusals).toEqual([false, false, false, false, false, true]);
});

describe("an answer that refuses", () => {
  function guardAt(time: { now: number }) {
    let run = (): void => undefined;
    const guard = new OverloadGuard({
      clock: {
        monotonic: () => time.now,
        schedule: (scheduled) => {
          run = scheduled;
          return () => undefined;
        },
      },
      random: () => 0.5,
      settings: () => settings,
      callsUnderWay: () => 1,
      events: noEvents,
    });
    guard.start();
    return { guard, measure: () => run() };
  }

  test("waits for the end of a turn of the loop that takes far too long, and for no other", async () => {
    const time = { now: 0 };
    const { guard, measure } = guardAt(time);
    time.now = 20 + 2 * settings.loopDelayMs;
    expect(guard.answersAfter).toBeUndefined();
    time.now += 1;
    const waits = [guard.answersAfter, guard.answersAfter];
    expect(waits[0]).toBeInstanceOf(Promise);
    let ended = 0;
    const all = waits.map(async (wait) => {
      await wait;
      ended += 1;
    });
    await Bun.sleep(5);
    expect(ended).toBe(0);
    measure();
    await Promise.all(all);
    expect(ended).toBe(2);
    expect(guard.answersAfter).toBeUndefined();
  });

  test("waits no more when the guard is stopped", async () => {
    const time = { now: 0 };
    const { guard } = guardAt(time);
    time.now = 10 * settings.loopDelayMs;
    const wait = guard.answersAfter;
    guard.stop();
    expect(await wait).toBeUndefined();
    expect(guard.answersAfter).toBeUndefined();
  });
});

describe("the number of calls under way", () => {
  const decide = (calls: number, each: CapacityClass): boolean => {
    const guard = new OverloadGuard({
      clock: { monotonic: () => 0, schedule: () => () => undefined },
      random: () => 0.5,
      settings: () => ({ loopDelayMs: 100, maxCalls: 1_000 }),
      callsUnderWay: () => calls,
      events: noEvents,
    });
    const key = { provisionedUnits: each === "on-demand" ? 0 : 1 };
    return guard.refusesUnread(key) || guard.refusesAdmitted(key, each);
  };

  test("leaves the last tenth to provisioned calls, and two tenths more to all but spillover", () => {
    for (const [each, room] of [
      ["spillover", 700],
      ["on-demand", 900],
      ["provisioned", 1_000],
    ] as const) {
      expect([decide(room, each), decide(room + 1, each)]).toEqual([false, true]);
    }
  });

  test("refuses a key with units before its body is read when there is no room for any class", () => {
    let calls = 1_000;
    const guard = new OverloadGuard({
      clock: { monotonic: () => 0, schedule: () => () => undefined },
      random: () => 0.5,
      settings: () => ({ loopDelayMs: 100, maxCalls: 1_000 }),
      callsUnderWay: () => calls,
      events: noEvents,
    });
    expect(guard.refusesUnread({ provisionedUnits: 3 })).toBe(false);
    calls += 1;
    expect(guard.refusesUnread({ provisionedUnits: 3 })).toBe(true);
  });
});

test("a refusal is a 503 that names a time between one and two seconds, and its rule", () => {
  const times = [0, 0.3, 1].map((jitter) => {
    const guard = new OverloadGuard({
      clock: { monotonic: () => 0, schedule: () => () => undefined },
      random: () => jitter,
      settings: () => settings,
      callsUnderWay: () => 1,
      events: noEvents,
    });
    const error = guard.refusal();
    expect([error.status, error.code]).toEqual([503, "model_unavailable"]);
    expect(error.explanation?.rule).toBe("overloaded");
    return [error.headers["retry-after"], error.headers["retry-after-ms"]];
  });
  expect(times).toEqual([
    ["1", "1000"],
    ["2", "1300"],
    ["2", "2000"],
  ]);
});
