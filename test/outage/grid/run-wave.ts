import { setTimeout as sleep } from "node:timers/promises";
import { startFaultProcess, type FaultProcess } from "../../support/fault-process.ts";
import { startDoubles, type Doubles } from "../doubles/start-doubles.ts";
import type { Load } from "../load/load-plan.ts";
import { runLoad } from "../load/start-load.ts";
import { placeCells, type GridModels, type PlacedCell } from "./cell-models.ts";
import type { Cell } from "./cells.ts";
import type { CellRun } from "./verdict.ts";

/** The durations before, during and after the fault of a cell. */
export interface WavePlan {
  readonly perSecond: number;
  readonly warmSeconds: number;
  readonly faultSeconds: number;
  readonly afterSeconds: number;
  /** The time after the break in which callers may notice it. */
  readonly noticedMs: number;
  /** The fields of every upstream in the configuration. */
  readonly timeouts: string;
}

/** Calls of a gateway that has just started take longer. */
const coldMs = 1_000;
/** The time until the callers' process runs. */
const leadMs = 1_500;

/** Sections besides the wave's upstreams and models. */
export const gridSections = {
  // Callers reuse connections: one that the gateway closes as idle would fail a call.
  http: "{ idle_timeout: 255s }",
};

/** Runs these cells concurrently, with their own gateway, doubles and callers. */
export async function runWave(
  cells: readonly Cell[],
  plan: WavePlan,
  signal: AbortSignal,
): Promise<readonly CellRun[]> {
  const models = placeCells(cells);
  await using doubles = await startDoubles(models.upstreams.length);
  const sections = { ...gridSections, ...models.sections(doubles.ports, plan.timeouts) };
  await using gateway = await startFaultProcess(sections);
  const startsAt = Date.now() + leadMs;
  const { warmSeconds, faultSeconds, afterSeconds } = plan;
  const loads = loadsOf(models, gateway, plan);
  const seconds = warmSeconds + faultSeconds + afterSeconds;
  const calling = runLoad({ startsAt, seconds, loads }, signal);
  const wave = { doubles, gateway, models, signal };
  const failing = failAll(wave, startsAt + warmSeconds * 1000, plan);
  const [calls, outages] = await Promise.all([calling, failing]);
  return models.cells.map((placed, index) => {
    const outage = outages[index];
    if (outage === undefined) throw new Error(`no outage of ${placed.cell.name}`);
    return {
      cell: placed.cell,
      primary: placed.primary,
      warmedUpAt: startsAt + coldMs,
      noticedMs: plan.noticedMs,
      ...outage,
      calls: calls.get(placed.model) ?? [],
      control: calls.get(placed.control.model) ?? [],
    };
  });
}

function loadsOf(
  { cells, controls }: GridModels,
  { key, serving }: FaultProcess,
  { perSecond }: WavePlan,
): Load[] {
  const common = { key, url: serving.dataUrl, perSecond };
  return [
    ...cells.map(({ model, cell: { kind } }) => ({ name: model, model, kind, ...common })),
    ...controls.map(({ model, kind }) => ({ name: model, model, kind, ...common })),
  ];
}

interface Wave {
  readonly doubles: Doubles;
  readonly gateway: FaultProcess;
  readonly models: GridModels;
  readonly signal: AbortSignal;
}

type Outage = Pick<CellRun, "brokenAt" | "repairedAt" | "attemptsAtFailing">;

/** Breaks the primary target of every cell at this time, and repairs it as planned. */
async function failAll(
  wave: Wave,
  breakAt: number,
  { faultSeconds, noticedMs }: WavePlan,
): Promise<readonly Outage[]> {
  const { cells } = wave.models;
  const indexOf = ({ primary }: PlacedCell): number => wave.models.upstreams.indexOf(primary);
  await sleepUntil(breakAt, wave.signal);
  const broken = await Promise.all(
    cells.map((placed) => wave.doubles.break(indexOf(placed), placed.cell.fault)),
  );
  await sleepUntil(breakAt + noticedMs, wave.signal);
  const before = await countRefused(wave);
  await sleepUntil(breakAt + faultSeconds * 1000, wave.signal);
  const after = await countRefused(wave);
  const repaired = await Promise.all(cells.map((placed) => wave.doubles.repair(indexOf(placed))));
  return cells.map((_, index) => {
    const brokenAt = broken[index]?.now ?? Number.NaN;
    const { now: repairedAt = Number.NaN, failedAt = [] } = repaired[index] ?? {};
    const isLater = (at: number): boolean => at >= brokenAt + noticedMs && at < repairedAt;
    const refused = (after[index] ?? Number.NaN) - (before[index] ?? Number.NaN);
    return {
      brokenAt,
      repairedAt,
      attemptsAtFailing: failedAt.filter(isLater).length + refused,
    };
  });
}

/** Attempts so far at targets that refuse connections: no double sees them, the metrics do. */
async function countRefused({ gateway, models }: Wave): Promise<readonly number[]> {
  const metrics = await gateway.metrics();
  return models.cells.map(({ cell: { fault }, primary }) =>
    fault === "refused" ? failedAttempts(metrics, primary) : 0,
  );
}

/** Sum of `sluice_attempt_failures_total` over the kinds of failure. */
function failedAttempts(metrics: string, upstream: string): number {
  return metrics
    .split("\n")
    .filter((line) => line.startsWith(`sluice_attempt_failures_total{upstream="${upstream}"`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

async function sleepUntil(at: number, signal: AbortSignal): Promise<void> {
  await sleep(Math.max(0, at - Date.now()), undefined, { signal });
}
