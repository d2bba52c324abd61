import { describe, expect, test } from "bun:test";
import type { Allotment as Granted, AllotmentWish } from "../../../../store/allotments.ts";
import { virtualClock } from "../../../../../test/support/virtual-clock.ts";
import { Allotment } from "./allotment.ts";

/** What the store does with wishes. */
interface Answer {
  fair?: number;
  /** Else what is wanted. */
  places?: number;
  isLost?: boolean;
  free?: number;
  fails?: boolean;
}

/** One process's places of a bound of 100, and a store that answers as the test tells it. */
function worldOf(rank = { number: 1, workers: 4 }) {
  const { clock, advance } = virtualClock();
  const demand = { used: 0, waiting: 0, waitingFirst: 0, accounts: 1 };
  const wishes: AllotmentWish[] = [];
  let answer: Answer = {};
  let sequence = 0;
  const allotment = new Allotment({
    clock,
    store: {
      isUp: true,
      rank,
      async exchange(wish): Promise<Granted> {
        wishes.push(wish);
        if (answer.fails === true) throw new Error("no answer");
        const { places = wish.kept + wish.wanted, fair = Infinity } = answer;
        return { places, fair, isLost: answer.isLost ?? false, free: answer.free ?? 0 };
      },
    },
    bound: "pool shared",
    nextSequence: () => (sequence += 1),
    demand: () => demand,
    onChanged: () => undefined,
  });
  allotment.limit = 100;
  return {
    allotment,
    demand,
    answers: (next: Answer): void => {
      answer = next;
    },
    /** What it asks for meanwhile. */
    after: (durationMs: number): readonly AllotmentWish[] => {
      wishes.length = 0;
      advance(durationMs);
      return [...wishes];
    },
    /** It has places. */
    begin: (places: number): void => {
      answer = { places };
      void allotment.exchange();
      advance(100);
      answer = {};
    },
  };
}

describe("others want places", () => {
  test("a process whose calls use all of its places does not answer", () => {
    const { allotment, demand, after, begin } = worldOf();
    begin(10);
    demand.used = 10;
    allotment.wanted();
    expect(after(10)).toEqual([]);
    // A call ends.
    demand.used = 9;
    allotment.left();
    expect(after(30)).toMatchObject([{ kept: 9 }]);
  });

  test("a process gives back unused ones", () => {
    const { allotment, demand, after, begin } = worldOf();
    begin(10);
    demand.used = 4;
    allotment.wanted();
    expect(after(10)).toMatchObject([{ kept: 4, wanted: 0 }]);
  });

  test("many processes answer one after the other, and once", () => {
    const begunAt = Array.from({ length: 100 }, (_, index) => {
      const { allotment, after, begin } = worldOf({ number: index + 1, workers: 100 });
      begin(10);
      allotment.wanted();
      let at = 0;
      while (after(2).length === 0) at += 1;
      allotment.wanted();
      expect(after(1_000).length).toBeLessThanOrEqual(1);
      return at;
    });
    expect(new Set(begunAt).size).toBeGreaterThan(90);
  });
});

describe("a process whose calls wait", () => {
  test.each([
    [4, 25],
    [40, 2],
    [100, 1],
  ])("of %d asks again %d times within half a second", (workers, times) => {
    const { allotment, demand, answers, after, begin } = worldOf({ number: 1, workers });
    begin(10);
    Object.assign(demand, { used: 10, waiting: 3 });
    answers({ places: 10, fair: 10 });
    void allotment.exchange();
    after(0);
    let asked = 0;
    for (let step = 0; step < 50; step += 1) {
      allotment.look();
      asked += after(10).length;
    }
    expect(Math.abs(asked - times)).toBeLessThanOrEqual(1);
  });

  test("asks at once when others have given back places", () => {
    const { allotment, demand, answers, after, begin } = worldOf({ number: 1, workers: 100 });
    begin(10);
    Object.assign(demand, { used: 10, waiting: 1 });
    answers({ places: 10, fair: 10 });
    void allotment.exchange();
    after(0);
    answers({ fair: 11 });
    allotment.free();
    expect(after(10)).toMatchObject([{ wanted: 1 }]);
  });
});

test("a store that does not answer is asked more and more seldom", () => {
  const { allotment, demand, answers, after, begin } = worldOf();
  begin(10);
  demand.waiting = 1;
  answers({ fails: true });
  const askedIn = (durationMs: number): number => {
    let asked = 0;
    for (let passedMs = 0; passedMs < durationMs; passedMs += 10) {
      void allotment.exchange();
      asked += after(10).length;
    }
    return asked;
  };
  expect(askedIn(1_000)).toBeGreaterThan(2);
  expect(askedIn(4_000)).toBeLessThan(5);
  // It is there again.
  answers({});
  allotment.storeChanged();
  expect(after(10).length).toBe(1);
  expect(askedIn(100)).toBe(10);
});

test("a process whose places the store had lost tells it of them, and asks for no more for a while", () => {
  const { allotment, demand, answers, after, begin } = worldOf();
  begin(10);
  Object.assign(demand, { used: 10, waiting: 5 });
  answers({ places: 10, isLost: true });
  allotment.lost();
  expect(after(20)).toMatchObject([{ used: 10, allotted: 10 }]);
  void allotment.exchange();
  expect(after(500)).toEqual([]);
  after(500);
  void allotment.exchange();
  expect(after(10)).toMatchObject([{ wanted: 5 }]);
});

describe("while all tell a store what they have that has lost it", () => {
  test("a process uses its part of what was free before", () => {
    const { allotment, demand, answers, after } = worldOf();
    answers({ places: 10, free: 62 });
    void allotment.exchange();
    after(100);
    demand.used = 10;
    answers({ places: 10, isLost: true, free: 90 });
    allotment.lost();
    after(20);
    expect(allotment.places).toBe(10 + 15);
    demand.used = 20;
    after(700);
    expect(allotment.hasRoom).toBe(false);
    answers({});
    void allotment.exchange();
    expect(after(10)).toMatchObject([{ used: 20 }]);
  });

  test("a process of a full pool uses what it has", () => {
    const { allotment, demand, answers, after, begin } = worldOf();
    begin(10);
    demand.used = 10;
    answers({ places: 10, isLost: true, free: 90 });
    allotment.lost();
    after(20);
    expect(allotment.places).toBe(10);
  });
});
