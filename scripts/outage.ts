/**
 * Runs the outage suite of `test/outage`: targets that fail at a steady rate of calls, cell by cell;
 * with `--tenants` twenty tenants, one of which causes faults. Exits with 1 when a cell fails.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { gridTimeouts } from "../test/outage/grid/cell-models.ts";
import { allCells } from "../test/outage/grid/cells.ts";
import { runGrid } from "../test/outage/grid/run-grid.ts";
import { columns, gridLimits } from "../test/outage/grid/verdict.ts";
import { pickNamed } from "../test/outage/report/pick-named.ts";
import { headLine, isMet, rowLines, summaryLines, type Row } from "../test/outage/report/table.ts";
import { tenantColumns, tenantLimits } from "../test/outage/tenants/judge-tenants.ts";
import { runTenants } from "../test/outage/tenants/run-tenants.ts";
import { allScenarios } from "../test/outage/tenants/scenarios.ts";

const usage = `usage: npm run outage -- [options]

  --only WORDS    cells whose names have all of these parts, such as stall,stream; may be repeated
  --rate N        calls a second of each cell (default 50)
  --seconds N     how long the fault lasts (default 60)
  --parallel N    cells at the same time (default 6; tenants 2)
  --tenants       the suite of twenty tenants, of whom one causes faults
  --list          names of the cells, and nothing else
  --json FILE     writes the table as JSON`;

const warmSeconds = 6;
const afterSeconds = 12;
/** Time after the break in which callers may notice it. */
const noticedMs = 1_000;
const tenantCount = 20;

const stopping = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stopping.abort());
process.exitCode = await main();

interface Options {
  readonly only: readonly string[];
  readonly rate: number;
  readonly seconds: number;
  readonly parallel: number | undefined;
}

async function main(): Promise<number> {
  try {
    const { values } = readCommandLine();
    const options = {
      only: values.only,
      rate: readNumber("rate", values.rate),
      seconds: readNumber("seconds", values.seconds),
      parallel: values.parallel === undefined ? undefined : readNumber("parallel", values.parallel),
    };
    const suite = values.tenants ? tenantSuite(options) : gridSuite(options);
    if (!values.list) return await run(suite, values.json);
    for (const name of suite.names) console.log(name);
    return 0;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    return 2;
  }
}

function readCommandLine() {
  return parseArgs({
    options: {
      only: { type: "string", multiple: true, default: [] },
      rate: { type: "string", default: "50" },
      seconds: { type: "string", default: "60" },
      parallel: { type: "string" },
      tenants: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      json: { type: "string" },
    },
  });
}

function readNumber(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) {
    throw new Error(`--${name} takes a whole number from 1 on, not '${text}'`);
  }
  return number;
}

interface Suite {
  readonly names: readonly string[];
  readonly columns: readonly string[];
  readonly about: string;
  run(signal: AbortSignal): Promise<readonly Row[]>;
}

function gridSuite({ only, rate, seconds, parallel = 6 }: Options): Suite {
  const cells = pickNamed(allCells(), only);
  const plan = {
    perSecond: rate,
    warmSeconds,
    faultSeconds: seconds,
    afterSeconds,
    noticedMs,
    timeouts: gridTimeouts,
  };
  return {
    names: cells.map(({ name }) => name),
    columns,
    about:
      `${parallel} at once, each with ${rate} calls a second: ${warmSeconds} s well, ` +
      `${seconds} s of the fault, ${afterSeconds} s well again`,
    run: (signal) => runGrid({ cells, plan, limits: gridLimits, parallel, signal, onRow, onNote }),
  };
}

function tenantSuite({ only, rate, seconds, parallel = 2 }: Options): Suite {
  const scenarios = pickNamed(allScenarios(), only);
  const perSecondOfEach = rate / tenantCount;
  const plan = {
    perSecondOfEach,
    warmSeconds,
    faultSeconds: seconds,
    afterSeconds,
    timeouts: gridTimeouts,
  };
  return {
    names: scenarios.map(({ name }) => name),
    columns: tenantColumns,
    about:
      `${parallel} at once, each of ${tenantCount} tenants with ${perSecondOfEach} calls a ` +
      `second: ${warmSeconds} s well, ${seconds} s of the faults of one, ${afterSeconds} s after`,
    run: (signal) => runTenants({ scenarios, plan, limits: tenantLimits, parallel, signal, onRow }),
  };
}

function onRow(row: Row): void {
  for (const line of rowLines(row)) console.log(line);
}

function onNote(note: string): void {
  console.log(`     ${note}`);
}

async function run(suite: Suite, jsonPath: string | undefined): Promise<number> {
  console.log(`${suite.names.length} cells, ${suite.about}`);
  console.log(
    `timeouts of upstreams: ${gridTimeouts}, http.idle_timeout: 255s, overload.loop_delay: 10s; ${availableParallelism()} cores`,
  );
  console.log(headLine(suite.columns));
  const rows = await suite.run(stopping.signal);
  for (const line of summaryLines(rows, suite.columns)) console.log(line);
  const { about } = suite;
  if (jsonPath !== undefined) writeFileSync(jsonPath, JSON.stringify({ about, rows }, null, 2));
  return rows.length === suite.names.length && rows.every(isMet) ? 0 : 1;
}
