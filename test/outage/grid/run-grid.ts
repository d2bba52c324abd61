import { brokenRow, type Row } from "../report/table.ts";
import type { Cell } from "./cells.ts";
import { runWave, type WavePlan } from "./run-wave.ts";
import { columns, judgeCell, type Limits } from "./verdict.ts";

export interface GridRun {
  readonly cells: readonly Cell[];
  readonly plan: WavePlan;
  readonly limits: Limits;
  /** The number of concurrent cells. */
  readonly parallel: number;
  /** Ends the run with everything it started. */
  readonly signal: AbortSignal;
  readonly onRow: (row: Row) => void;
  readonly onNote: (note: string) => void;
}

/** Runs the cells in waves; a wave that cannot be run counts against all of its cells. */
export async function runGrid(run: GridRun): Promise<readonly Row[]> {
  const { cells, parallel, signal, onRow } = run;
  const rows: Row[] = [];
  for (let first = 0; first < cells.length && !signal.aborted; first += parallel) {
    const made = await runUndisturbed(run, cells.slice(first, first + parallel));
    made.forEach(onRow);
    rows.push(...made);
  }
  return rows;
}

/**
 * Calls beside the faults fail when the machine cannot carry the load. Such a wave is run again in
 * halves, and at last each of its cells by itself.
 */
async function runUndisturbed(run: GridRun, wave: readonly Cell[]): Promise<readonly Row[]> {
  const made = await runCells(run, wave);
  if (run.signal.aborted || !made.some(isDisturbed)) return made;
  run.onNote("calls beside these cells failed; they are run again:");
  for (const { name, findings } of made) run.onNote(`  ${name}: ${findings["beside"]?.text}`);
  if (wave.length === 1) return runCells(run, wave);
  const half = Math.ceil(wave.length / 2);
  const rows = await runUndisturbed(run, wave.slice(0, half));
  return [...rows, ...(await runUndisturbed(run, wave.slice(half)))];
}

function isDisturbed({ findings }: Row): boolean {
  return findings["beside"]?.isMet === false;
}

function runCells(
  { plan, limits, signal }: GridRun,
  wave: readonly Cell[],
): Promise<readonly Row[]> {
  return runWave(wave, plan, signal).then(
    (runs) => runs.map((cellRun): Row => judgeCell(cellRun, limits)),
    (error: unknown) => wave.map(({ name }) => brokenRow(name, columns, error)),
  );
}
