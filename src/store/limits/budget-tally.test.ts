import { expect, test } from "bun:test";
import { budgetOf } from "../../../test/contracts/limit-budget-contract.ts";
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
