import { expect, test } from "bun:test";
import { budgetOf } from "../../../test/contracts/limit-budget-contract.ts";
import { BudgetTally } from "./budget-tally.ts";

test("what the database no longer has is forgotten, and what it does not have yet is not", () => {
  const tally = new BudgetTally("own");
  const [kept, deleted] = [budgetOf(100), budgetOf(100, { id: "deleted" })];
  const hearAll = (...ids: readonly string[]): void => {
    const spend = ids.map((budgetId) => ({ budgetId, periodId: "2026-11", byProcess: { own: 5 } }));
    const note = {
      epoch: 1,
      isWhole: true,
      isComplete: true,
      processes: ["own"],
      silent: [],
      spend,
    };
    tally.hear(note, 0);
  };
  const spend = (callId: string, of: typeof kept): void => {
    tally.reserve(callId, [of], 5);
    tally.settle(callId, 5);
  };
  const known = () => Array.from(tally.totals(), ([key]) => key).toSorted();
  spend("first", kept);
  spend("second", deleted);
  hearAll("budget", "deleted");
  hearAll("budget");
  // Its row may be on the way.
  expect(known()).toEqual(["budget 2026-11", "deleted 2026-11"]);
  spend("third", deleted);
  hearAll("budget");
  expect(known()).toEqual(["budget 2026-11", "deleted 2026-11"]);
  hearAll("budget");
  expect(known()).toEqual(["budget 2026-11"]);
});
