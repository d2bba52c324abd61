/**
 * Runs the outage suite of `test/outage`: targets that fail at a rate of calls, cell by cell, and
 * with `--tenants` callers that share a model with one who causes faults. Ends with 1 when a cell
 * fails.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { gridTimeouts } from "../test/outage/grid/cell-models.ts";
import { allCells } from "../test/outage/grid/cells.ts";
import { pickNamed } from "../test/outage/report/pick-named.ts";
import { runGrid } from "../test/outage/grid/run-grid.ts";
import { columns, gridLimits } from "../test/outage/grid/verdict.ts";
import { headLine, isMet, rowLines, summaryLines, type Row } from "../test/outage/report/table.ts";

const warmSeconds = 6;
const afterSeconds = 12;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [] },
    rate: { type: "string", default: "50" },
    seconds: { type: "string", default: "60" },
    parallel: { type: "string", default: "6" },
    list: { type: "boolean", default: false },
    json: { type: "string" },
  },
});

process.exitCode = await main();

async function main(): Promise<number> {
  const cells = pickNamed(allCells(), values.only);
  if (values.list) {
    for (const { name } of cells) console.log(name);
    return 0;
  }
  const parallel = Number(values.parallel);
  const plan = {
    perSecond: Number(values.rate),
    warmSeconds,
    faultSeconds: Number(values.seconds),
    afterSeconds,
  };
  console.log(
    `${cells.length} cells, ${parallel} at once, each with ${plan.perSecond} calls a second: ` +
      `${warmSeconds} s well, ${plan.faultSeconds} s of the fault, ${afterSeconds} s well again`,
  );
  console.log(`upstreams: ${gridTimeouts}; ${availableParallelism()} cores`);
  console.log(headLine(columns));
  const rows = await runGrid({ cells, plan, limits: gridLimits, parallel, onRow: printRow });
  for (const line of summaryLines(rows, columns)) console.log(line);
  if (values.json !== undefined) {
    writeFileSync(values.json, JSON.stringify({ plan, rows }, null, 2));
  }
  return rows.every(isMet) ? 0 : 1;
}

function printRow(row: Row): void {
  for (const line of rowLines(row)) console.log(line);
}
