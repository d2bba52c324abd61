import type { Database } from "bun:sqlite";
import type { UsageStep } from "../../../../domain/usage/usage-report.ts";
import { type Detail, details, stepDetails } from "../usage-steps.ts";

/** Sums that are made of minutes: those of hours and days, in each detail. */
export interface Fold {
  readonly step: Exclude<UsageStep, "minute">;
  readonly detail: Detail;
}

/** A place in the table of minutes: what lies before it is part of the sums. */
export interface FoldPlace {
  readonly at: number;
  readonly groupId: number;
}

export const folds: readonly Fold[] = (["hour", "day"] as const).flatMap((step) =>
  stepDetails[step].map((detail) => ({ step, detail })),
);

export type FoldPlaces = ReadonlyMap<Fold, FoldPlace>;

export function readFolds(database: Database): FoldPlaces {
  return new Map(folds.map((fold) => [fold, readFold(database, fold)]));
}

export function readFold(database: Database, { step, detail }: Fold): FoldPlace {
  const place = database
    .query<FoldPlace, [string, number]>(
      "SELECT at, group_id AS groupId FROM usage_folds WHERE step = ? AND detail = ?",
    )
    .get(step, details[detail]);
  return place ?? { at: 0, groupId: 0 };
}

/** In a transaction. */
export function moveFold(database: Database, { step, detail }: Fold, place: FoldPlace): void {
  database
    .query<unknown, [number, number, string, number]>(
      "UPDATE usage_folds SET at = ?, group_id = ? WHERE step = ? AND detail = ?",
    )
    .run(place.at, place.groupId, step, details[detail]);
}

export function liesBefore(one: FoldPlace, other: FoldPlace): boolean {
  return one.at < other.at || (one.at === other.at && one.groupId < other.groupId);
}
