import type { UsageStep } from "../../../domain/usage/usage-report.ts";
import type { Queries } from "../tables.ts";
import { type Detail, details, stepDetails } from "./usage-steps.ts";

/** Sums folded from minutes: hours and days, in each detail. */
export interface Fold {
  readonly step: Exclude<UsageStep, "minute">;
  readonly detail: Detail;
}

/** A position in the table of minutes: rows before it are folded into the sums. */
export interface FoldPosition {
  readonly at: number;
  readonly groupId: number;
}

export const folds: readonly Fold[] = (["hour", "day"] as const).flatMap((step) =>
  stepDetails[step].map((detail) => ({ step, detail })),
);

export type FoldPositions = ReadonlyMap<Fold, FoldPosition>;

export function liesBefore(one: FoldPosition, other: FoldPosition): boolean {
  return one.at < other.at || (one.at === other.at && one.groupId < other.groupId);
}

export async function readFold(queries: Queries, { step, detail }: Fold): Promise<FoldPosition> {
  const position = await queries
    .selectFrom("usageFolds")
    .select(["at", "groupId"])
    .where("step", "=", step)
    .where("detail", "=", details[detail])
    .executeTakeFirst();
  return position ?? { at: 0, groupId: 0 };
}

/** The time before which retention removed the sums of each step. */
export async function readHorizons(queries: Queries): Promise<Readonly<Record<UsageStep, number>>> {
  const rows = await queries.selectFrom("usageHorizons").selectAll().execute();
  const of = (step: UsageStep): number => rows.find((row) => row.step === step)?.at ?? 0;
  return { minute: of("minute"), hour: of("hour"), day: of("day") };
}
