import { setTimeout as sleep } from "node:timers/promises";
import { startFaultProcess, type FaultProcess } from "../../support/fault-process.ts";
import { startDoubles, type Doubles } from "../doubles/start-doubles.ts";
import type { Load } from "../load/load-plan.ts";
import { runLoad } from "../load/start-load.ts";
import { placeCells, type GridModels, type PlacedCell } from "./cell-models.ts";
import type { Cell } from "./cells.ts";
import type { CellRun } from "./verdict.ts";

/** How long a cell is well, fails, and is well again. */
export interface WavePlan {
  readonly perSecond: number;
  readonly warmSeconds: number;
  readonly faultSeconds: number;
  readonly afterSeconds: number;
  /** How long after the break callers may notice it. */
  readonly noticedMs: number;
  /** Of every upstream, as in the configuration. */
  readonly timeouts: string;
}

/** Calls of a gateway that has just started take longer. */
const coldMs = 1_000;
/** Until the callers' process is there. */
const leadMs = 1_500;

/** Beside the sections of the wave's own upstreams and models. */
export const gridSections = {
  // Callers keep their connections: one that the gateway closes as idle would be a failed call.
  http: "{ idle_timeout: 255s }",
};

/** Runs these cells at the same time, on a gateway, doubles and callers of their own. */
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

type Outage = Pick<CellRun, "brokenAt" | "mendedAt" | "attemptsAtFailing">;

/** Breaks the primary target of every cell at this time, and mends it when the plan says so. */
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
  const mended = await Promise.all(cells.map((placed) => wave.doubles.mend(indexOf(placed))));
  return cells.map((_, index) => {
    const brokenAt = broken[index]?.now ?? Number.NaN;
    const { now: mendedAt = Number.NaN, failedAt = [] } = mended[index] ?? {};
    const isLater = (at: number): boolean => at >= brokenAt + noticedMs && at < mendedAt;
    const refused = (after[index] ?? Number.NaN) - (before[index] ?? Number.NaN);
    return {
      brokenAt,
      mendedAt,
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
