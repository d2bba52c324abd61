import { expect, test } from "bun:test";
import { callRowSchema } from "../../control/contract/usage.ts";
import { repricedNotes } from "./usage.ts";

test("a list of calls says which of them were priced again", () => {
  expect(Object.keys(callRowSchema.shape)).toContain("repriced_usd");
  expect(repricedNotes([{ repriced_usd: null }])).toEqual([]);
  const notes = repricedNotes([{ repriced_usd: "0.012400000" }, { repriced_usd: null }]);
  expect(notes.join()).toMatch(/^1 of them was priced again: USD is the first cost/);
});
