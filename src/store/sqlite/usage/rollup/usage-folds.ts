import type { Database } from "bun:sqlite";
import {
  type Fold,
  type FoldPosition,
  type FoldPositions,
  folds,
} from "../../../repositories/usage/fold-positions.ts";
import { details } from "../../../repositories/usage/usage-steps.ts";

export function readFolds(database: Database): FoldPositions {
  return new Map(folds.map((fold) => [fold, readFold(database, fold)]));
}

function readFold(database: Database, { step, detail }: Fold): FoldPosition {
  const position = database
    .query<FoldPosition, [string, number]>(
      "SELECT at, group_id AS groupId FROM usage_folds WHERE step = ? AND detail = ?",
    )
    .get(step, details[detail]);
  return position ?? { at: 0, groupId: 0 };
}

/** Needs a transaction. */
export function moveFold(database: Database, { step, detail }: Fold, position: FoldPosition): void {
  database
    .query<unknown, [number, number, string, number]>(
      "UPDATE usage_folds SET at = ?, group_id = ? WHERE step = ? AND detail = ?",
    )
    .run(position.at, position.groupId, step, details[detail]);
}
