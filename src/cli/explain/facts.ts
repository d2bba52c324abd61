import type { ReplyRecord } from "../output/reply-fields.ts";
import { columnOf, formatRecords, type Column } from "../output/show-reply.ts";

export type Fact = readonly [name: string, value: string | number];

/** Formats a line for each fact. */
export function formatFacts(facts: readonly Fact[]): readonly string[] {
  return facts.map(([name, value]) => `  ${name.padEnd(11)}  ${value}`);
}

/** Formats an indented table with numbered rows under a title. */
export function formatSteps(
  title: string,
  columns: readonly (string | Column)[],
  steps: readonly ReplyRecord[],
): readonly string[] {
  const number = { title: "", of: (step: ReplyRecord) => steps.indexOf(step) + 1 };
  const table = formatRecords([number, ...columns.map(columnOf)], steps);
  return ["", title, table.replaceAll(/^/gm, "  ")];
}
