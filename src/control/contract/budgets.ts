import { z } from "zod";
import { budgetModes, budgetPeriods } from "../../domain/money/budget.ts";
import { isTimeZone } from "../../domain/money/calendar.ts";
import { mostUsd, nanoOfUsd } from "../../domain/money/usd.ts";
import { receiptFields } from "./processes.ts";
import { idSchema, noteSchema, pageFields, revisionSchema, timeSchema } from "./values.ts";

export const timeZoneSchema = z
  .string()
  .max(100)
  .refine(isTimeZone, "use an IANA name such as `Europe/Berlin` or `UTC`")
  .meta({ examples: ["Europe/Berlin"] });

const most = mostUsd.toLocaleString("en");

/** A decimal text, because JSON numbers are floats in most programs. */
const limitSchema = z
  .string()
  .max(40)
  .refine(
    isLimit,
    `use USD above 0 and up to ${most} as a text of digits, such as "5" or "0.25", with at most 9 ` +
      "digits after the point",
  )
  .meta({ examples: ["5.00"] });

function isLimit(text: string): boolean {
  const nano = /^[0-9.]+$/.test(text) ? nanoOfUsd(text) : undefined;
  return nano !== undefined && nano > 0 && nano <= mostUsd * 1_000_000_000;
}

const alertsSchema = z
  .array(z.int().min(1).max(1_000))
  .max(10)
  .describe(
    "Percentages of the limit. When what is spent reaches one, an event tells, once in a period. At " +
      "first 50, 80 and 100.",
  );

const mode = z
  .enum(budgetModes)
  .describe(
    "`refuse`: calls beyond the limit are refused. `warn`: events tell of it, and no more.",
  );

/** An amount of USD, with all nine digits after the point. */
export const moneySchema = z.string().meta({ examples: ["0.012400000"] });

const budgetStateSchema = z
  .object({
    period_id: z.string().meta({ examples: ["2026-11"] }),
    starts_at: timeSchema,
    ends_at: timeSchema.nullable().describe("When the next period begins; null: never."),
    spent_usd: moneySchema.describe("The cost of its stored calls."),
    reserved_usd: moneySchema
      .nullable()
      .describe(
        "What calls under way on this machine may cost beside that. Null: the answer is of a change, or " +
          "the budget is for each end user.",
      ),
    left_usd: moneySchema.describe("Of the limit, without what is spent."),
    percent: z.int().describe("Of the limit, rounded down: at 100, nothing is left."),
    runs_out_at: timeSchema
      .nullable()
      .describe(
        "When the limit is reached if spending goes on as in this period so far. Null: not in this " +
          "period, it is reached already, or neither a day nor 5 % of the period has passed.",
      ),
    unpriced_calls: z.int().describe("Calls whose cost is not known: more is spent than is told."),
  })
  .meta({ id: "BudgetState", description: "The current period of a budget." });

export const budgetSchema = z
  .object({
    id: z.string().meta({ examples: ["bgt_6Wq1sX8vTn3Rk5Jd"] }),
    account_id: z.string(),
    account: z.string().describe("Name of the account."),
    application_id: z.string().nullable().describe("Null: all applications of the account."),
    application: z.string().nullable().describe("Name of the application."),
    key_id: z.string().nullable().describe("Null: all keys of the account or the application."),
    model: z.string().nullable().describe("Null: all models."),
    each_end_user: z
      .boolean()
      .describe("Whether each end user may spend the limit. `state` is of the one who spent most."),
    period: z.enum(budgetPeriods),
    time_zone: z.string(),
    mode,
    limit_usd: moneySchema,
    alerts: z.array(z.int()),
    note: z.string(),
    set_by: z
      .enum(["operator", "account_holder"])
      .describe("Only operators can change what an operator has set."),
    created_at: timeSchema,
    revision: revisionSchema,
    state: budgetStateSchema,
  })
  .meta({ id: "Budget", description: "How much calls may cost in a period." });
export type BudgetView = z.infer<typeof budgetSchema>;

export const changedBudgetSchema = budgetSchema
  .extend(receiptFields)
  .meta({ id: "ChangedBudget", description: "A budget, and who has applied its change." });

export const newBudgetSchema = z
  .strictObject({
    account_id: idSchema
      .optional()
      .describe("Required for operators, unless an application or a key is named."),
    application_id: idSchema.optional().describe("Only calls of this application count."),
    key_id: idSchema.optional().describe("Only calls of this key count."),
    model: z.string().min(1).max(200).optional().describe("Only calls for this alias count."),
    each_end_user: z
      .boolean()
      .optional()
      .describe(
        "Each end user of these calls may spend the limit. Such a budget refuses, has no alerts and no " +
          "period `total`, and does not count calls that name nobody.",
      ),
    limit_usd: limitSchema,
    period: z
      .enum(budgetPeriods)
      .describe(
        "`week`: from Monday. `total`: from now on, for ever. Others count from the beginning of the " +
          "current period. It never changes.",
      ),
    time_zone: timeZoneSchema
      .optional()
      .describe("IANA name. At first that of the account. It never changes."),
    mode: mode.optional().describe("At first `refuse`."),
    alerts: alertsSchema.optional(),
    note: noteSchema.optional(),
  })
  .meta({
    id: "NewBudget",
    examples: [{ account_id: "acct_9fQ2mZ7LxW3kTb5N", limit_usd: "5.00", period: "month" }],
  });

export const budgetChangeSchema = z
  .strictObject({
    revision: revisionSchema,
    limit_usd: limitSchema.optional(),
    mode: mode.optional(),
    alerts: alertsSchema.optional(),
    note: noteSchema.optional(),
  })
  .meta({ id: "BudgetChange", examples: [{ revision: 1, limit_usd: "7.50" }] });

export const budgetQuerySchema = z.strictObject({
  account_id: idSchema.optional(),
  application_id: idSchema.optional(),
  key_id: idSchema.optional(),
  ...pageFields,
});
