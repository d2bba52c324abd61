import { expect, test } from "bun:test";
import { budgetOf } from "../../../test/contracts/limit-budget-contract.ts";
import { mostEndUsers, otherEndUsers } from "../../domain/money/budget.ts";
import { BudgetTally } from "./budget-tally.ts";

test("after two days without a call, what a process has spent is what the database has of it", () => {
  const tally = new BudgetTally("own");
  const [used, idle, running] = ["used", "idle", "running"].map((id) => budgetOf(100, { id }));
  if (used === undefined || idle === undefined || running === undefined) throw new Error("three");
  const processes = ["own"];
  const byProcess = { own: 5 };
  const spend = [{ budgetId: "idle", periodId: idle.period.id, byProcess }];
  const note = { epoch: 1, isWhole: true, isComplete: true, processes, silent: [], spend };
  for (const scope of [used, idle]) {
    tally.reserve("call", [scope], 7);
    tally.settle("call", 7);
  }
  tally.reserve("long call", [running], 7);
  for (let hour = 0; hour < 50; hour += 1) {
    tally.update(note, 0);
    tally.reserve("call", [used], 1);
    tally.settle("call", 0);
  }
  expect(Array.from(tally.all(), ({ scope }) => scope.budget.id)).toEqual(["used", "running"]);
  expect(tally.full([idle], 96)).toMatchObject([{ spentNano: 5 }]);
  expect(tally.full([idle], 95)).toBeUndefined();
});

test("what others have spent follows the notes, and a predecessor counts until all of it is stored", () => {
  const tally = new BudgetTally("own");
  const scope = budgetOf(100);
  const noteOf = (epoch: number, byProcess: Record<string, number>, silent: string[] = []) => ({
    epoch,
    isWhole: false,
    isComplete: true,
    processes: ["own"],
    silent,
    spend: [{ budgetId: "budget", periodId: scope.period.id, byProcess }],
  });
  const spent = () => tally.full([scope], 101)?.[0]?.spentNano;
  tally.update(noteOf(1, { "": -5, own: 7, gone: 20 }), 0);
  expect(spent()).toBe(7 - 5 + 20);
  tally.update(noteOf(2, { "": -5, own: 7, gone: 30 }), 0);
  expect(spent()).toBe(7 - 5 + 30);
  tally.follow({ gone: { [`budget ${scope.period.id}`]: 36 } });
  expect(spent()).toBe(7 - 5 + 36);
  // It gives no sign, but its calls may run.
  for (const nowMs of [0, 61_000]) tally.update(noteOf(3, { own: 7, gone: 30 }, ["gone"]), nowMs);
  expect(spent()).toBe(7 + 36);
  for (const nowMs of [61_000, 122_000]) tally.update(noteOf(4, { own: 7, gone: 30 }), nowMs);
  expect(spent()).toBe(7 + 30);
});

test("end users that a process sees first are bounded in number, also over its hourly notes", () => {
  const tally = new BudgetTally("own");
  const { budget, period } = budgetOf(100);
  const note = { epoch: 1, isWhole: true, isComplete: true, processes: ["own"], silent: [] };
  const places = new Set<string | undefined>();
  for (let index = 0; index < mostEndUsers + 50; index += 1) {
    const place = tally.placeOf({ budget, period, endUser: `made-up-${index}` });
    tally.reserve("call", [place], 1);
    tally.settle("call", 1);
    places.add(place.endUser);
  }
  expect(places.size).toBe(mostEndUsers + 1);
  const placeOf = (endUser: string) => tally.placeOf({ budget, period, endUser }).endUser;
  const stored = { budgetId: "budget/made-up-7", periodId: period.id, byProcess: { own: 1 } };
  for (const spend of [[], [stored], [stored]]) {
    tally.update({ ...note, spend }, 0);
    expect([placeOf("made-up-7"), placeOf("new")]).toEqual(["made-up-7", otherEndUsers]);
  }
  // Once they are idle, and nothing of them is stored, there is room.
  for (let hour = 0; hour < 50; hour += 1) tally.update({ ...note, spend: [] }, 0);
  expect(placeOf("new")).toBe("new");
});

test("who shared the limit of all others before a hand-over shares it afterwards", () => {
  const { budget, period } = budgetOf(100);
  const note = { epoch: 1, isWhole: true, isComplete: true, processes: ["before"], silent: [] };
  const before = new BudgetTally("before");
  before.update({ ...note, spend: [] }, 0);
  for (let index = 0; index < mostEndUsers + 5; index += 1) {
    const place = before.placeOf({ budget, period, endUser: `made-up-${index}` });
    before.reserve("call", [place], 20);
    before.settle("call", 20);
  }
  const tally = new BudgetTally("own");
  tally.follow(before.byProcess(0));
  const placeOf = (endUser: string) => tally.placeOf({ budget, period, endUser });
  // Nothing is stored yet, then one call.
  const stored = { budgetId: "budget/made-up-7", periodId: period.id, byProcess: { before: 20 } };
  for (const spend of [[], [stored]]) {
    tally.update({ ...note, spend }, 0);
    expect(placeOf("made-up-7").endUser).toBe("made-up-7");
    expect(placeOf(`made-up-${mostEndUsers + 1}`).endUser).toBe(otherEndUsers);
    expect(tally.full([placeOf("new")], 1)).toMatchObject([{ spentNano: 100 }]);
  }
});

test("a successor is told no spend of periods that are over, once it is stored or a day has passed", () => {
  const tally = new BudgetTally("own");
  const [stored, unstored, running, lasting] = ["stored", "unstored", "running", "lasting"].map(
    (id) => {
      const { budget, period } = budgetOf(100, { id });
      return { budget, period: { ...period, endsAt: id === "lasting" ? 9e12 : 1_000 } };
    },
  );
  if (!stored || !unstored || !running || !lasting) throw new Error("four");
  const periodId = stored.period.id;
  const note = { epoch: 1, isWhole: true, isComplete: true, processes: ["own"], silent: [] };
  const all = [stored, unstored, lasting];
  tally.reserve("call", all, 7);
  tally.settle("call", 7);
  tally.reserve("long call", [running], 5);
  const spend = ["stored", "lasting", "unstored"].map((budgetId) => {
    return { budgetId, periodId, byProcess: { own: budgetId === "unstored" ? 6 : 7 } };
  });
  tally.update({ ...note, spend }, 0);
  const told = (now: number) =>
    Object.keys(tally.byProcess(now)["own"] ?? {}).map((key) => key.split(" ")[0]);
  expect(told(999)).toEqual(["stored", "unstored", "lasting", "running"]);
  expect(told(1_000)).toEqual(["unstored", "lasting", "running"]);
  expect(told(86_401_000)).toEqual(["lasting", "running"]);
});

test("what is reserved is told of calls under way alone", () => {
  const tally = new BudgetTally("own");
  const [one, two] = [budgetOf(100), budgetOf(100, { id: "two" })];
  tally.reserve("first", [one, two], 7);
  tally.reserve("second", [one], 5);
  tally.reserve("free", [two], 0);
  const { id } = one.period;
  expect(tally.reservedNano).toEqual({ [`budget ${id}`]: 12, [`two ${id}`]: 7 });
  tally.settle("first", 3);
  expect(tally.reservedNano).toEqual({ [`budget ${id}`]: 5 });
});
