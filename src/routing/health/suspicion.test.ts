import { expect, test } from "bun:test";
import { Suspicion } from "./suspicion.ts";

test("silence has to be seen twice: a delayed event loop sees it once", () => {
  const suspicion = new Suspicion();
  expect(suspicion.isWarranted(true, 1_000)).toBe(false);
  expect(suspicion.isWarranted(true, 1_049)).toBe(false);
  expect(suspicion.isWarranted(true, 1_050)).toBe(true);
  const late = new Suspicion();
  expect(late.isWarranted(true, 1_000)).toBe(false);
  expect(late.isWarranted(false, 1_001)).toBe(false);
  expect(late.isWarranted(true, 1_060)).toBe(false);
});

test("a raised suspicion warrants one probe at a time", () => {
  const suspicion = new Suspicion();
  suspicion.raise();
  expect(suspicion.isWarranted(false, 0)).toBe(true);
  expect([suspicion.tryBeginProbe(), suspicion.tryBeginProbe()]).toEqual([true, false]);
  expect(suspicion.isWarranted(false, 0)).toBe(false);
  suspicion.ended();
  expect(suspicion.isWarranted(false, 0)).toBe(false);
  expect(suspicion.tryBeginProbe()).toBe(true);
});

test("a target that answered a probe is not suspected again at once", () => {
  const suspicion = new Suspicion();
  suspicion.raise();
  suspicion.tryBeginProbe();
  suspicion.cleared(0);
  suspicion.raise();
  expect(suspicion.isWarranted(true, 4_999)).toBe(false);
  expect(suspicion.isWarranted(false, 5_000)).toBe(true);
});
