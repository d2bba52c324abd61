import { drainMicrotasks } from "bun:jsc";
import { expect, test } from "bun:test";
import { MemoryLink } from "../../../../../test/support/memory-link.ts";
import {
  plainRouting,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../../../../../test/support/pipeline-fixtures.ts";
import { virtualClock } from "../../../../../test/support/virtual-clock.ts";
import { Capacity, type CapacityOptions } from "../../../../admission/capacity/capacity.ts";
import type { EnterResult, Place } from "../../../../admission/capacity/place.ts";
import { ConcurrencyLimit } from "../../../../routing/health/concurrency-limit.ts";
import { PlaceCoordination } from "../../../control/coordination/place-coordination.ts";
import { LinkLost } from "../../../link/link-errors.ts";
import type { CoordinationLink } from "../coordination-link.ts";
import { RemoteCapacity } from "./remote-capacity.ts";

const target = targetOf("up");

/** Control and two workers. */
function start({ places = 100, answersInTime = true } = {}) {
  const { clock, advance } = virtualClock();
  const snapshot = snapshotOf([upstreamOf("up", { maxInFlight: places })]);
  const options: CapacityOptions = {
    clock,
    limits: { acquire: () => Promise.reject(new Error("no tokens")), settle: () => undefined },
    settings: () => ({ queueLimit: 10 }),
    units: { holdings: () => new Map(), unitsOf: () => 0 },
    limitOf: () => new ConcurrencyLimit(),
  };
  const config = { ...snapshot, routing: plainRouting };
  const control = new PlaceCoordination({ ...options, config, workers: 2 });
  const messages: string[] = [];
  const workers = [1, 2].map((number) => {
    const way = new MemoryLink();
    const link: CoordinationLink = {
      ...way.link,
      ask: (kind, body) =>
        answersInTime
          ? (messages.push(kind), way.link.ask(kind, body))
          : Promise.reject(new LinkLost("no answer in time")),
      tell: (kind, body) => (messages.push(kind), way.link.tell(kind, body)),
    };
    const own = new Capacity(options);
    const worker = { hangs: false };
    const capacity = new RemoteCapacity({ link, clock, own, workers: 2, number });
    const desk = control.newDesk({
      when: (decide) => decide(),
      tellLent: () => undefined,
      askScarce: (bounds) =>
        worker.hangs
          ? new Promise((_, reject) => void clock.schedule(() => reject(new Error("late")), 500))
          : way.askBack(() => capacity.scarce(bounds)),
      tellPlenty: (bounds) => way.tellBack(() => capacity.plenty(bounds)),
    });
    way.connect({ ...desk.handlers, ...control.routing.handlers });
    capacity.report();
    desk.adopt([]);
    return Object.assign(worker, {
      link: way.link,
      enter(keyId: string, waitMs = 0) {
        const request = {
          callId: "call",
          keyId,
          accountId: keyId,
          capacityClass: "on-demand",
          provisionedPool: undefined,
          tokens: 1,
        } as const;
        const { signal } = new AbortController();
        return capacity.enter({ request, candidates: [{ target }], snapshot, signal, waitMs });
      },
    });
  });
  const [one, other] = workers;
  if (one === undefined || other === undefined) throw new Error("there are two workers");
  messages.length = 0;
  const held = () => control.capacity.at(upstreamOf("up")).places.count;
  return { one, other, control, messages, advance, clock, held };
}

function placeOf(result: EnterResult): Place {
  if (!("place" in result)) throw new Error(`no place: ${result.refused[0]?.busy}`);
  expect(result.place.tryOpen()).toBe(true);
  return result.place;
}

function end(place: Place): void {
  place.close();
  place.settle(1);
  place.leave();
}

test("attempts that follow each other ask control once, and give the place back in the end", async () => {
  const { one, messages, advance, held } = start();
  for (let time = 0; time < 100; time += 1) {
    const entering = one.enter("a");
    expect(entering instanceof Promise).toBe(time === 0);
    end(placeOf(await entering));
    advance(10);
  }
  expect([messages, held()]).toEqual([["places.enter"], 1]);
  advance(100);
  expect([messages, held()]).toEqual([["places.enter", "places.leave"], 0]);
});

test("a place with a request under way is not kept", async () => {
  const { one, messages } = start();
  const place = placeOf(await one.enter("a"));
  place.settle(1);
  place.leave();
  expect(messages).toEqual(["places.enter", "places.leave"]);
  place.close();
  expect(messages.at(-1)).toBe("places.less");
});

test("a call finds the last places though another worker has kept them", async () => {
  const { one, other } = start({ places: 4 });
  const kept = [placeOf(await one.enter("a")), placeOf(await one.enter("a"))];
  for (const place of kept) end(place);
  const entered = [other.enter("b"), other.enter("b"), other.enter("b"), other.enter("b")];
  for (const result of entered) placeOf(await result);
  expect(await one.enter("a")).toMatchObject({ refused: [{ busy: "full" }] });
});

test("parts of a call find places that another worker has kept", async () => {
  const { one, other } = start({ places: 4 });
  end(placeOf(await one.enter("a")));
  const place = placeOf(await other.enter("b"));
  expect(await place.extend(4)).toBe(4);
});

test("a call whose place control does not decide is refused with a rule", async () => {
  const { one } = start({ answersInTime: false });
  const refusal = await Promise.resolve(one.enter("a")).catch((error: unknown) => error);
  expect(refusal).toMatchObject({
    code: "model_unavailable",
    explanation: { rule: "limits_unavailable" },
  });
});

test("a worker that hangs holds up a refusal for half a second, and no call after it", async () => {
  const { one, other, advance } = start({ places: 2 });
  placeOf(await one.enter("a"));
  one.hangs = true;
  placeOf(await other.enter("b"));
  let refused: EnterResult | undefined;
  void Promise.resolve(other.enter("b")).then((result) => (refused = result));
  advance(499);
  expect(refused).toBeUndefined();
  advance(1);
  expect(refused).toMatchObject({ refused: [{ busy: "full" }] });
  const next = other.enter("b");
  drainMicrotasks();
  expect(await next).toMatchObject({ refused: [{ busy: "full" }] });
});

test("the concurrency limit of a target is learned from attempts that are under way", async () => {
  const { one, other, control, clock } = start({ places: 1_000 });
  const inUse: Place[] = [];
  for (let count = 0; count < 40; count += 1) inUse.push(placeOf(await other.enter("a")));
  const kept: Place[] = [];
  for (let count = 0; count < 16; count += 1) kept.push(placeOf(await one.enter("b")));
  for (const place of kept) end(place);
  expect(control.limitOf(target.id).inFlight).toBe(56);
  const overloaded = Array.from({ length: 30 }, () => [target.id, "a"] as const);
  const began = { retries: [], hedges: [] };
  other.link.tell("routing.report", { began, answered: [], overloaded });
  drainMicrotasks();
  expect(control.limitOf(target.id).limitAt(clock.monotonic())).toBe(0.8 * inUse.length);
});
