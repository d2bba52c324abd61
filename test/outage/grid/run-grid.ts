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

/**
 * Runs the cells in waves; a wave that cannot be run counts against all of its cells. A wave whose
 * control calls failed is repeated once, because the machine may have been stalled.
 */
export async function runGrid(run: GridRun): Promise<readonly Row[]> {
  const { cells, parallel, signal, onRow, onNote } = run;
  const rows: Row[] = [];
  for (let first = 0; first < cells.length && !signal.aborted; first += parallel) {
    const wave = cells.slice(first, first + parallel);
    let made = await runCells(run, wave);
    if (made.some(({ findings }) => findings["beside"]?.isMet === false) && !signal.aborted) {
      onNote("calls beside these cells failed; they are run again:");
      made.forEach(({ name, findings }) => onNote(`  ${name}: ${findings["beside"]?.text}`));
      made = await runCells(run, wave);
    }
    made.forEach(onRow);
    rows.push(...made);
  }
  return rows;
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
