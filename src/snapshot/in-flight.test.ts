import { expect, test } from "bun:test";
import { systemClock } from "../domain/clock.ts";
import { InFlight, type PatientEntry } from "./in-flight.ts";

const forever = new AbortController().signal;
/** Longer than any test. */
const longMs = 60_000;

function patient(signal: AbortSignal, patienceMs = longMs): PatientEntry {
  return { signal, patienceMs, clock: systemClock };
}

test("a place that is given back goes to who waits longest, and to nobody else", async () => {
  const places = new InFlight(1);
  expect(places.tryEnter()).toBe(true);
  const order: string[] = [];
  const first = places.enter(patient(forever)).then(() => order.push("first"));
  const second = places.enter(patient(forever)).then(() => order.push("second"));
  places.leave();
  expect(places.tryEnter()).toBe(false);
  await first;
  expect(order).toEqual(["first"]);
  places.leave();
  await second;
  places.leave();
  expect([places.count, places.tryEnter()]).toEqual([0, true]);
});

test("who gives up waiting, for lack of time or of interest, takes no place later", async () => {
  const places = new InFlight(1);
  places.tryEnter();
  const leaving = new AbortController();
  const left = places.enter(patient(leaving.signal));
  const late = places.enter(patient(forever, 1));
  leaving.abort();
  expect(await Promise.all([left, late])).toEqual([false, false]);
  expect(await places.enter(patient(AbortSignal.abort()))).toBe(false);
  places.leave();
  expect(places.count).toBe(0);
});

test("a limit that rises lets in who waits; one that falls lets in nobody until it is kept", async () => {
  const places = new InFlight(2);
  places.tryEnter();
  places.tryEnter();
  const waiting = [places.enter(patient(forever)), places.enter(patient(forever))];
  places.limit = 4;
  expect(await Promise.all(waiting)).toEqual([true, true]);
  places.limit = 1;
  const last = places.enter(patient(forever));
  for (let leaves = 0; leaves < 3; leaves += 1) places.leave();
  expect(places.count).toBe(1);
  places.leave();
  expect([await last, places.count]).toEqual([true, 1]);
});
