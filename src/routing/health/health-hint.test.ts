import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { ejection, up } from "../../../test/support/target-world.ts";
import { TargetHealth, type HealthHint } from "./target-health.ts";

function processOf() {
  const clock = new ManualClock();
  const found: HealthHint[] = [];
  const believed: HealthHint[] = [];
  const health = new TargetHealth({
    clock,
    settings: () => ejection,
    onEjected: ({ target, key, ...ejected }) => void found.push({ target, key, ejected }),
    onReturned: (returned) => void found.push({ ...returned, ejected: undefined }),
    onTakenOver: (hint) => void believed.push(hint),
  });
  const view = (key = "a") => health.view(up.id, key);
  const tryBegin = (key = "a") => health.tryBegin(up, { key, isStreamed: true });
  return { clock, health, found, believed, view, tryBegin };
}

const ejectedForAll: HealthHint = {
  target: up.id,
  key: undefined,
  ejected: { forMs: 1_000, times: 1, because: "another process said so" },
};
const returnedForAll = { target: up.id, key: undefined, ejected: undefined };

test("an ejection by another process is believed without evidence, and not passed on", () => {
  const { clock, health, found, believed, view, tryBegin } = processOf();
  health.takeOver(ejectedForAll);
  expect(view()).toMatchObject({ isEjected: true, because: "another process said so" });
  expect(tryBegin()).toBeUndefined();
  clock.advance(1_000);
  // The ejection is due: the first process with an answer ends it.
  expect(view()).toMatchObject({ ejectedForMs: 0, needsProbe: true });
  health.tryBeginProbe(up.id)?.ended("answered");
  expect(view()).toMatchObject({ isEjected: false, isStartingSlowly: true });
  expect([found, believed]).toEqual([[returnedForAll], [ejectedForAll]]);
});

test("a return that another process saw ends the ejection, slowly", () => {
  const { health, found, view, tryBegin } = processOf();
  health.takeOver(ejectedForAll);
  health.takeOver(returnedForAll);
  health.takeOver(returnedForAll);
  expect(view()).toMatchObject({ isEjected: false, isStartingSlowly: true });
  expect([tryBegin() !== undefined, tryBegin()]).toEqual([true, undefined]);
  expect(found).toEqual([]);
});

test("hints of one key do not concern the others", () => {
  const { health, view } = processOf();
  health.takeOver({ ...ejectedForAll, key: "a" });
  expect([view("a").isEjected, view("b").isEjected]).toEqual([true, false]);
  health.takeOver({ ...returnedForAll, key: "b" });
  expect(view("a").isEjected).toBe(true);
});

test("a hint that is older than what the process knows changes nothing, a newer one does", () => {
  const { clock, health, believed, view } = processOf();
  health.takeOver(ejectedForAll);
  clock.advance(600);
  health.takeOver(ejectedForAll);
  expect(view().ejectedForMs).toBe(400);
  const again = { forMs: 2_000, times: 2, because: "again" };
  health.takeOver({ ...ejectedForAll, ejected: again });
  expect(view()).toMatchObject({ ejectedForMs: 2_000, because: "again" });
  expect(believed).toHaveLength(2);
});

test("a hint about a target that is not configured is forgotten", () => {
  const { health, view } = processOf();
  health.retain(new Set());
  health.takeOver(ejectedForAll);
  expect(view().isEjected).toBe(false);
});
