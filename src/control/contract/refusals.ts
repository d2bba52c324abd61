import { z } from "zod";
import { budgetPeriods } from "../../domain/money/budget.ts";
import { callDialects } from "../../domain/usage/usage.ts";
import { moneySchema } from "./budgets.ts";
import { callDetailSchema } from "./usage.ts";
import { idSchema, numberText, timeSchema } from "./values.ts";

export const refusalSchema = z
  .object({
    id: z.string().describe("The request's `x-request-id`."),
    at: timeSchema,
    status: z.int(),
    caller_status: z.int().nullable().describe("As the caller's API has it; null: a stream's 200."),
    dialect: z.enum(callDialects).nullable().describe("The API of the request; null: of models."),
    code: z.string().nullable(),
    is_audited: z
      .boolean()
      .describe("The plan is in audit: the request was served, and would have been refused so."),
    rule: z.string().meta({ examples: ["tokens_per_minute"] }),
    summary: z.string(),
    key_id: z.string().nullable(),
    public_id: z.string().nullable().describe("Public id of the secret that was sent."),
    account_id: z.string().nullable(),
    application: z.string().nullable(),
    environment: z.string().nullable(),
    plan: z.string().nullable().describe("The plan that sets the limits of the key; null: itself."),
    model: z.string().nullable(),
    param: z.string().nullable().describe("Path of the field at fault."),
    window: z
      .object({
        scope_id: z.string(),
        limit: z.number(),
        used: z.number().describe("Counted or reserved at that time."),
        requested: z.number(),
        free_at: timeSchema
          .nullable()
          .describe("When it would have fitted without other requests; null: never."),
      })
      .nullable(),
    budget: z
      .object({
        id: z.string(),
        scope: z.enum(["account", "application", "key"]),
        each_end_user: z.boolean().describe("Whether each end user of these calls has it."),
        model: z.string().nullable(),
        period: z.enum(budgetPeriods),
        period_id: z.string(),
        time_zone: z.string(),
        set_by: z.enum(["operator", "account_holder"]),
        limit_usd: moneySchema,
        spent_usd: moneySchema,
        reserved_usd: moneySchema.describe("What calls under way could cost."),
        requested_usd: moneySchema.describe("The most that the request could cost."),
        resets_at: timeSchema.nullable().describe("Null: never."),
      })
      .nullable()
      .describe("The budget that had no room, as it was at that time."),
  })
  .meta({ id: "Refusal", description: "Why a request got an error." });
export type RefusalView = z.infer<typeof refusalSchema>;

export const refusalQuerySchema = z.strictObject({
  key_id: idSchema.optional(),
  account_id: idSchema.optional(),
  limit: numberText({ min: 1, max: 500, initial: 50 }).describe("Maximum number of refusals."),
});

export const refusalsSchema = z.object({ data: z.array(refusalSchema) });

export const explanationSchema = z
  .object({
    id: z.string(),
    call: callDetailSchema.nullable().describe("Null if the request did not become a call."),
    refusal: refusalSchema.nullable().describe("Null if it got no error, or it is not kept."),
    names: z
      .object({ account: z.string().nullable(), key: z.string().nullable() })
      .describe("Names of the request's account and key; null: none, or not known now."),
    is_ledger_read: z.boolean().describe("False while the ledger cannot be read: `call` is null."),
  })
  .meta({ id: "Explanation", description: "What became of a request." });
