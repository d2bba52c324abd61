import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isComplete } from "../support/requirement.ts";
import { allCells } from "./grid/cells.ts";
import { runGrid } from "./grid/run-grid.ts";
import { gridLimits } from "./grid/verdict.ts";
import { pickNamed } from "./report/pick-named.ts";
import { rowLines, type Row } from "./report/table.ts";
import { tenantLimits } from "./tenants/judge-tenants.ts";
import { runTenants } from "./tenants/run-tenants.ts";
import { allScenarios } from "./tenants/scenarios.ts";

/** Cells of `npm run outage`: each fault once, with every wire, kind of call and rest that can serve. */
const cellNames = [
  "throttle-retry-after/fallback/openai/whole",
  "throttle/both/bedrock/stream",
  "error-500/fallback/bedrock/whole",
  "unavailable-503/second/openai/embeddings",
  "refused/fallback/openai/stream",
  "reset/equal/openai/whole",
  "black-hole/second/bedrock/embeddings",
  "slow-headers/fallback/bedrock/stream",
  "stall/both/openai/stream",
  "half/fallback/bedrock/whole",
];
const cellsAtOnce = 5;
/** Longer than in the grid: a slow machine must not make healthy upstreams look like failing ones. */
const timeouts = "{ connect: 1s, first_byte: 2s, idle: 2s }";
const cellPlan = {
  perSecond: 50,
  warmSeconds: 3,
  faultSeconds: 20,
  afterSeconds: 12,
  noticedMs: 5_000,
  timeouts,
};
/** The failures of a minute: a trial of the target may fail a stream. */
const cellLimits = { ...gridLimits, alwaysAllowedFailures: 2, mostAddedMs: undefined };

const scenarioNames = ["timeouts/two-targets/own-accounts", "crowd/one-target/own-accounts"];
const scenarioPlan = {
  perSecondOfEach: 2.5,
  warmSeconds: 3,
  faultSeconds: 20,
  afterSeconds: 5,
  timeouts,
};
/** Tolerates other work on the machine. */
const scenarioLimits = {
  ...tenantLimits,
  noiseMs: { p50: 100, p99: 1_000 },
  mostAddedP99Ms: 2_000,
};

/** Enough for waves that are run again. */
const runTimeoutMs = 900_000;
const stopping = new AbortController();
const { signal } = stopping;
const rows = new Map<string, Row>();
const keep = (row: Row): void => void rows.set(row.name, row);

describe.skipIf(!isComplete)("at fifty calls a second:", () => {
  beforeAll(async () => {
    const cells = pickNamed(allCells(), cellNames);
    await runGrid({
      cells,
      plan: cellPlan,
      limits: cellLimits,
      parallel: cellsAtOnce,
      signal,
      onRow: keep,
      onNote: (note) => void process.stdout.write(`${note}\n`),
    });
    const scenarios = pickNamed(allScenarios(), scenarioNames);
    await runTenants({
      scenarios,
      plan: scenarioPlan,
      limits: scenarioLimits,
      parallel: scenarios.length,
      signal,
      onRow: keep,
    });
  }, runTimeoutMs);

  // Leaves time for a timeout of the tests before.
  afterAll(() => stopping.abort());

  test.each(cellNames)("callers do not notice %s", expectMet);

  test.each(scenarioNames)("nineteen tenants do not notice %s of the twentieth", expectMet);
});

function expectMet(name: string): void {
  const row = rows.get(name);
  const broken = Object.entries(row?.findings ?? {}).filter(([, { isMet }]) => !isMet);
  expect({ broken, lines: row && broken.length > 0 ? rowLines(row) : [] }).toEqual({
    broken: [],
    lines: [],
  });
  expect(row).toBeDefined();
}
