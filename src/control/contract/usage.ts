import { z } from "zod";
import {
  callDialects,
  callOutcomes,
  usageSources,
  usageDimensions,
  usageRanks,
  usageSteps,
} from "../../domain/usage/usage.ts";
import { costItems } from "../../domain/money/cost-parts.ts";
import { idSchema, numberText, pageFields, timeSchema } from "./values.ts";

const time = (about: string) => z.string().max(40).optional().describe(about);
const name = z.string().min(1).max(200).optional();

const filterFields = {
  since: time("A time, or an age: `30m`, `12h`, `7d`. Default: a day before `until`."),
  until: time("Like `since`; excluded. Default: now."),
  environment: name,
  account_id: idSchema.optional(),
  application_id: idSchema.optional(),
  key_id: idSchema.optional(),
  model: name.describe("An alias."),
  dialect: z.enum(callDialects).optional().describe("The API of the request."),
  target: name.describe("`upstream/identifier`. Not for account holders."),
  outcome: z.enum(callOutcomes).optional().describe("How the call ended."),
  status: z
    .string()
    .regex(/^[1-5][0-9]{2}$/, "use an HTTP status such as 200")
    .transform(Number)
    .optional()
    .describe("An HTTP status."),
  code: name.describe("An error code, such as `rate_limit_exceeded`."),
  class: z.enum(["provisioned", "spillover", "on-demand"]).optional(),
  end_user: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe("An end user as calls have it: a pseudonym, unless names are stored."),
  tag: z
    .string()
    .regex(/^[^=]{1,64}=./, "use a key and a value such as team=search")
    .max(200)
    .optional()
    .describe("A key and a value, such as `team=search`."),
};

const groupFields = {
  by: z
    .string()
    .max(100)
    .optional()
    .describe(
      `Dimensions to group by, separated by commas: ${usageDimensions.join(", ")}; and ` +
        "`end_user` and `tag:<key>`, which only the calls that are kept have. Account holders cannot " +
        "group by target.",
    )
    .meta({ examples: ["key,model"] }),
  limit: numberText({ min: 1, max: 1000, initial: 100 }).describe("Maximum number of groups."),
  rest: z
    .literal("true")
    .optional()
    .describe(
      "`true`: also the sum of the groups beyond `limit`, with an empty `group`; in a series for each " +
        "step.",
    ),
};

export const totalsQuerySchema = z.strictObject({ ...filterFields, ...groupFields });

export const seriesQuerySchema = z.strictObject({
  ...filterFields,
  ...groupFields,
  step: z
    .enum(usageSteps)
    .optional()
    .describe("The default depends on the period. At most 1500 steps."),
  rank: z.enum(usageRanks).optional().describe("What the groups have the most of. Default: calls."),
});

const callFilterFields = {
  ...filterFields,
  may_be_billed_twice: z
    .literal("true")
    .optional()
    .describe("`true`: only calls that a provider may bill twice."),
};

export const callQuerySchema = z.strictObject({ ...callFilterFields, ...pageFields });

export const exportFormats = ["csv", "ndjson"] as const;
export const exportQuerySchema = z.strictObject({
  format: z.enum(exportFormats).prefault("csv"),
  ...callFilterFields,
});

/** Exact, with nine digits after the point. */
export const usdSchema = z.string().meta({ examples: ["0.012400000"] });

const percentilesSchema = z
  .object({ p50: z.number(), p95: z.number(), p99: z.number() })
  .meta({ id: "Percentiles", description: "In milliseconds, within 5 % of the exact value." });

const totalFields = {
  group: z
    .record(z.string(), z.union([z.string(), z.number(), z.null()]))
    .describe("Ids and values, by the dimensions of `by`."),
  names: z
    .record(z.string(), z.string().nullable())
    .describe(
      "Names of the account, application and key in `group`, as they are now; null if it was " +
        "removed. A key without a name has that of its application.",
    ),
  calls: z.int(),
  failed_calls: z.int().describe("Calls that did not complete."),
  abandoned_calls: z.int().describe("Of those, calls whose caller left."),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_input_tokens: z.int().describe("Part of the input tokens."),
  cache_write_tokens: z.int().describe("Part of the input tokens, written to an upstream's cache."),
  estimated_tokens: z.int().describe("Tokens that no upstream counted."),
  cost_usd: usdSchema
    .nullable()
    .describe("Cost of the calls that have one. Null: there are only calls without a price."),
  unpriced_calls: z
    .int()
    .describe("Calls without a cost. If there are any, `cost_usd` is the least that it can be."),
  duration_ms: percentilesSchema.nullable().describe("Of completed calls."),
  first_event_ms: percentilesSchema.nullable(),
};

export const usageTotalSchema = z.object(totalFields).meta({ id: "UsageTotal" });
export type UsageTotalView = z.infer<typeof usageTotalSchema>;

export const usagePointSchema = z
  .object({ at: timeSchema.describe("Beginning of the step, in UTC."), ...totalFields })
  .meta({ id: "UsagePoint" });

const range = { since: timeSchema, until: timeSchema };

export const totalsSchema = z
  .object({ ...range, data: z.array(usageTotalSchema) })
  .meta({ id: "UsageTotals" });

export const seriesSchema = z
  .object({
    ...range,
    step: z.enum(usageSteps),
    data: z.array(usagePointSchema).describe("Steps without calls are left out."),
  })
  .meta({ id: "UsageSeries" });

const targetSchema = z
  .string()
  .describe("`upstream/identifier`. Account holders see only the upstream.");

export const callRowSchema = z
  .object({
    id: z.string().describe("The request's `x-request-id`."),
    started_at: timeSchema,
    environment: z.string(),
    account_id: z.string(),
    application_id: z.string(),
    application: z.string(),
    key_id: z.string(),
    model: z.string(),
    dialect: z.enum(callDialects).describe("The API of the request."),
    target: targetSchema.nullable(),
    class: z.enum(["provisioned", "spillover", "on-demand"]),
    input_tokens: z.int(),
    output_tokens: z.int(),
    cached_input_tokens: z.int(),
    cache_write_tokens: z.int(),
    cache_write_1h_tokens: z.int().describe("Part of them, kept for an hour."),
    service_tier: z.string().nullable().describe("The tier of the price. Null: not known."),
    cost_usd: usdSchema.nullable().describe("Null: something that the call used has no price."),
    repriced_usd: usdSchema
      .nullable()
      .describe("The cost by the last run that priced the call again. Null: it has its first."),
    price_version: z
      .int()
      .nullable()
      .describe("The price table of the cost. Null: no price was needed, or there was none."),
    usage_source: z.enum(usageSources),
    outcome: z.enum(callOutcomes),
    status: z.int(),
    code: z.string().nullable(),
    is_streamed: z.boolean(),
    attempts: z.int(),
    first_event_ms: z.number().nullable(),
    duration_ms: z.number(),
    may_be_billed_twice: z
      .boolean()
      .describe("Whether the provider may also bill an attempt that did not answer."),
    via: z
      .enum(["playground"])
      .nullable()
      .describe("`playground`: a user of the console made it. Null: an application did."),
    end_user: z
      .string()
      .nullable()
      .describe("A pseudonym, unless the file says that names are stored. Null: none was named."),
    tags: z.record(z.string(), z.string()).nullable().describe("Values by keys. Null: none."),
  })
  .meta({ id: "CallRow", description: "One call: one row of the ledger." });
export type CallRow = z.infer<typeof callRowSchema>;

const routingSchema = z
  .object({
    candidates: z
      .array(
        z.object({
          target: targetSchema,
          model: z.string().describe("For a fallback, a different model from the call's."),
          why: z.string().describe("Why it has this position."),
        }),
      )
      .describe("Targets in the order of preference, at most 64."),
    attempts: z
      .array(
        z.object({
          target: targetSchema,
          model: z.string(),
          start_ms: z.number().describe("Since the call arrived."),
          duration_ms: z.number(),
          outcome: z.string().describe("`answered`, `given-up`, or the failure."),
          may_be_billed: z
            .boolean()
            .describe("Whether the provider may bill it although it did not answer."),
          decision: z.string().nullable().describe("The decision after it failed, if any."),
        }),
      )
      .describe("At most 10, always including the last."),
  })
  .meta({ id: "CallRouting" });
export type RoutingView = z.infer<typeof routingSchema>;

export const costPartSchema = z
  .object({
    item: z.enum(costItems),
    tokens: z.int(),
    usd_per_million: z.string().describe("The price of 1M such tokens, or images."),
    cost_usd: usdSchema.describe("Rounded; the cost of the call is rounded once."),
  })
  .meta({ id: "CostPart" });

export const callDetailSchema = callRowSchema
  .extend({
    cost_parts: z
      .array(costPartSchema)
      .nullable()
      .describe(
        "How its tokens make up `cost_usd`. Null: it has no cost, or used several targets with prices " +
          "of their own, or was cut by a crash.",
      ),
    routing: routingSchema
      .nullable()
      .describe("Null for a single target and a single, successful attempt."),
  })
  .meta({ id: "CallDetail", description: "One call, and how it found its target." });
export type CallDetail = z.infer<typeof callDetailSchema>;
