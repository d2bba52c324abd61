import { brokenRow, type Row } from "../report/table.ts";
import type { Cell } from "./cells.ts";
import { runWave, type WavePlan } from "./run-wave.ts";
import { columns, judgeCell, type Limits } from "./verdict.ts";

export interface GridRun {
  readonly cells: readonly Cell[];
  readonly plan: WavePlan;
  readonly limits: Limits;
  /** Cells at the same time. */
  readonly parallel: number;
  readonly onRow: (row: Row) => void;
}

/** Runs the cells in waves; a wave that cannot be run counts against all of its cells. */
export async function runGrid(run: GridRun): Promise<readonly Row[]> {
  const { cells, plan, limits, parallel, onRow } = run;
  const rows: Row[] = [];
  for (let first = 0; first < cells.length; first += parallel) {
    const wave = cells.slice(first, first + parallel);
    const made = await runWave(wave, plan).then(
      (runs) => runs.map((cellRun): Row => judgeCell(cellRun, limits)),
      (error: unknown) => wave.map(({ name }) => brokenRow(name, columns, error)),
    );
    made.forEach(onRow);
    rows.push(...made);
  }
  return rows;
}
