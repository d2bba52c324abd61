import type { Database } from "bun:sqlite";
import type { Fold, FoldPlace } from "../../../repositories/usage/sum-places.ts";
import { details, stepDetails } from "../../../repositories/usage/usage-steps.ts";

export const folds: readonly Fold[] = (["hour", "day"] as const).flatMap((step) =>
  stepDetails[step].map((detail) => ({ step, detail })),
);

export type FoldPlaces = ReadonlyMap<Fold, FoldPlace>;

export function readFolds(database: Database): FoldPlaces {
  return new Map(folds.map((fold) => [fold, readFold(database, fold)]));
}

function readFold(database: Database, { step, detail }: Fold): FoldPlace {
  const place = database
    .query<FoldPlace, [string, number]>(
      "SELECT at, group_id AS groupId FROM usage_folds WHERE step = ? AND detail = ?",
    )
    .get(step, details[detail]);
  return place ?? { at: 0, groupId: 0 };
}

/** Needs a transaction. */
export function moveFold(database: Database, { step, detail }: Fold, place: FoldPlace): void {
  database
    .query<unknown, [number, number, string, number]>(
      "UPDATE usage_folds SET at = ?, group_id = ? WHERE step = ? AND detail = ?",
    )
    .run(place.at, place.groupId, step, details[detail]);
}
