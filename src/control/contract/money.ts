import { z } from "zod";
import { costItems } from "../../domain/money/cost-parts.ts";
import { timeSchema } from "./values.ts";
import { usdSchema } from "./usage.ts";

const time = (about: string) => z.string().max(40).describe(about);

export const repriceSchema = z.strictObject({
  since: time("First time of the calls, or an age: `30m`, `12h`, `7d`."),
  until: time("Like `since`; excluded. Default: now.").optional(),
  price_version: z
    .int()
    .min(1)
    .optional()
    .describe("The price table that is to count. Default: the one that applies now."),
  closed_periods: z
    .boolean()
    .optional()
    .describe("Whether what was spent in ended periods of budgets changes, too."),
  dry_run: z.boolean().optional().describe("Only tell what would change."),
});

export const repricedSchema = z
  .object({
    run: z.string().describe("Names the run in the adjustments and in the audit."),
    dry_run: z.boolean(),
    price_version: z.int(),
    since: timeSchema,
    until: timeSchema,
    closed_periods: z.boolean(),
    calls: z.int().describe("Calls of the time range."),
    repriced: z.int().describe("Calls whose cost changes."),
    not_priced: z
      .int()
      .describe("Calls that stay, because the table has no price for what they used."),
    not_explained: z
      .int()
      .describe(
        "Calls that stay, because their cost is not that of their tokens at one target: some used " +
          "several, others were cut by a crash.",
      ),
    old_usd: usdSchema.describe("What the repriced calls cost until now."),
    new_usd: usdSchema,
  })
  .meta({ id: "Repriced", description: "A run that priced calls again." });

export const statementQuerySchema = z.strictObject({
  month: z
    .string()
    .regex(/^\d{4}-(?:0[1-9]|1[0-2])$/, "use a month such as 2026-11")
    .describe("In the time zone of the account."),
  format: z.enum(["json", "csv"]).prefault("json"),
});

export const statementLineSchema = z.object({
  model: z.string(),
  item: z
    .enum([...costItems, "other", "adjustments", "not_priced"])
    .describe(
      "Tokens of a class; `image`: images, whose number is in `tokens`; `other`: attempts at other targets, calls cut by a crash, and rounding; " +
        "`adjustments`: calls that were priced again; `not_priced`: all tokens of calls without a cost.",
    ),
  tokens: z.int().nullable(),
  cost_usd: usdSchema.nullable(),
});

export const statementSchema = z
  .object({
    account_id: z.string(),
    account: z.string(),
    month: z.string(),
    time_zone: z.string(),
    since: timeSchema,
    until: timeSchema,
    calls: z.int(),
    unpriced_calls: z.int().describe("Calls without a cost, which the amounts lack."),
    lines: z.array(statementLineSchema).describe("Their costs add up to the total, exactly."),
    total_usd: usdSchema,
  })
  .meta({ id: "Statement", description: "What the calls of an account cost in a month." });
export type StatementView = z.infer<typeof statementSchema>;
