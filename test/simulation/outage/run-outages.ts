import { pickNamed } from "../../outage/report/pick-named.ts";
import { headLine, isMet, rowLines, summaryLines, type Row } from "../../outage/report/table.ts";
import { allOutages, outageTimes, type Outage, type OutageRunner } from "./run-suite.ts";

export interface OutagesWanted extends OutageRunner {
  /** Filters of names; none: all. */
  readonly only: readonly string[];
  readonly print: (line: string) => void;
}

export function namesOfOutages(only: readonly string[]): readonly string[] {
  return pickNamed(allOutages(), only).map(({ name }) => name);
}

/** Prints a table, row by row. Returns whether every row keeps every promise. */
export async function runOutages({ only, print, ...runner }: OutagesWanted): Promise<boolean> {
  const outages = pickNamed(allOutages(), only);
  const { perSecond, warmSeconds, afterSeconds } = outageTimes;
  print(
    `${outages.length} cells, each with ${perSecond} calls a second: ${warmSeconds} s well, ` +
      `${runner.faultSeconds} s of the fault, ${afterSeconds} s well again`,
  );
  const width = Math.max(...outages.map(({ name }) => name.length));
  const rows: Row[] = [];
  for (const group of inGroups(outages)) {
    const [{ columns } = { columns: [] }] = group;
    print(headLine(columns, width));
    const made: Row[] = [];
    for (const outage of group) {
      const row = await outage.judge(runner);
      rowLines(row, width).forEach(print);
      made.push(row);
    }
    summaryLines(made, columns).forEach(print);
    rows.push(...made);
  }
  return rows.every(isMet);
}

/** Groups the rows with the same columns, in order. */
function inGroups(outages: readonly Outage[]): readonly (readonly Outage[])[] {
  return [...Map.groupBy(outages, ({ columns }) => columns).values()];
}
