import { expect, test } from "bun:test";
import type { Allotment as Granted, AllotmentWish } from "../../../../store/allotments.ts";
import { virtualClock } from "../../../../../test/support/virtual-clock.ts";
import { Allotment } from "./allotment.ts";

/** One process's places of a bound of 100, and a store that answers as the test tells it. */
function worldOf() {
  const { clock, advance } = virtualClock();
  const demand = { used: 0, waiting: 0, waitingFirst: 0, accounts: 1 };
  const wishes: AllotmentWish[] = [];
  const answer: { fair: number; places: number | undefined } = {
    fair: Infinity,
    places: undefined,
  };
  let sequence = 0;
  const allotment = new Allotment({
    clock,
    store: {
      isUp: true,
      async exchange(wish): Promise<Granted> {
        wishes.push(wish);
        return { fair: answer.fair, places: answer.places ?? wish.kept + wish.wanted };
      },
    },
    bound: "pool shared",
    nextSequence: () => (sequence += 1),
    demand: () => demand,
    onChanged: () => undefined,
    shareOf: (limit) => limit / 4,
  });
  allotment.limit = 100;
  /** What it asks for meanwhile. */
  const after = (durationMs: number): readonly AllotmentWish[] => {
    wishes.length = 0;
    advance(durationMs);
    return [...wishes];
  };
  /** It has places; calls use and want some. */
  const begin = (places: number): void => {
    Object.assign(answer, { places });
    void allotment.exchange();
    advance(0);
    Object.assign(answer, { places: undefined });
  };
  return { allotment, demand, answer, after, begin };
}

test("a process whose calls use all of its places does not answer that others want some", () => {
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

test("a process gives back unused places at once when others want some", () => {
  const { allotment, demand, after, begin } = worldOf();
  begin(10);
  demand.used = 4;
  after(100);
  allotment.wanted();
  expect(after(10)).toMatchObject([{ kept: 4, wanted: 0 }]);
});
