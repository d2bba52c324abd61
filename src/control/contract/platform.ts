import { z } from "zod";
import { planModes } from "../../domain/limits/plan.ts";
import { timeSchema } from "./values.ts";

const planSchema = z
  .object({
    name: z.string(),
    requests_per_minute: z.int().nullable().describe("Null: each key has its own."),
    tokens_per_minute: z.int().nullable(),
    mode: z.enum(planModes).describe("`audit`: its limits refuse nothing."),
    token_weights: z
      .object({
        cached_input: z.number(),
        cache_write: z.number(),
        output: z.number().nullable().describe("Null: by the model, as in the provider's quota."),
      })
      .nullable()
      .describe("What a token counts in `tokens_per_minute`; null: each counts 1."),
    provisioned: z.boolean().describe("Whether its keys may have provisioned throughput."),
  })
  .meta({ id: "Plan", description: "A named set of limits." });
export type PlanView = z.infer<typeof planSchema>;

export const plansSchema = z.object({ data: z.array(planSchema) });

export const environmentsSchema = z.object({
  data: z.array(
    z
      .object({
        name: z.string(),
        hosts: z.array(z.string()).describe("Host names that callers use; `*`: any other."),
        base_url: z
          .string()
          .nullable()
          .describe(
            "Base URL for clients: `https` at its own host, else the address of `listen.data`. " +
              "Null if that is all addresses, or the system has chosen the port.",
          ),
        models: z.array(z.string()).describe("Aliases."),
      })
      .meta({
        id: "Environment",
        description: "A deployment stage with its own hosts and models.",
      }),
  ),
});

export const modelQuerySchema = z.strictObject({ environment: z.string().max(100).optional() });

export const modelSchema = z
  .object({
    alias: z.string(),
    kind: z.enum(["chat", "embedding"]),
    environment: z.string(),
    context_window: z.int().describe("Maximum tokens of input and output together."),
    max_output_tokens: z.int().nullable().describe("Null for embeddings."),
    targets: z
      .array(z.string())
      .nullable()
      .describe(
        "`upstream/model`, in the order in which they are tried. Null except for operators.",
      ),
    fallbacks: z.array(z.string()).describe("Models that are tried if its targets fail."),
  })
  .meta({ id: "Model", description: "A model that callers can use in an environment." });

export const modelsSchema = z.object({ data: z.array(modelSchema) });

export const pepperSchema = z
  .object({
    pepper: z.string().describe("An identifier that does not reveal the pepper."),
    role: z
      .enum(["first", "older", "not_configured"])
      .describe(
        "The first pepper makes new digests. A pepper that is not configured verifies nothing.",
      ),
    secrets: z.int().describe("Live secrets of API keys with a digest under it."),
    tokens: z.int().describe("Live management tokens with a digest under it."),
  })
  .meta({ id: "PepperUse" });
export type PepperView = z.infer<typeof pepperSchema>;

export const peppersSchema = z
  .object({
    data: z.array(pepperSchema),
    first_since: timeSchema
      .nullable()
      .describe("When the current first pepper came into use; null: it always was."),
    kept_answers: z
      .int()
      .describe(
        "Stored answers from before that, which need an earlier pepper. They expire within a " +
          "day.",
      ),
  })
  .meta({ id: "Peppers" });

const operatorsOnly = "Null for account holders.";

const poolFields = {
  name: z.string(),
  status: z
    .enum(["ok", "oversold", "not_configured"])
    .nullable()
    .describe(
      "`oversold`: it is smaller than what is sold. `not_configured`: keys have units of it, " +
        `but it is not in the configuration. ${operatorsOnly}`,
    ),
  kind: z.enum(["shared", "dedicated"]).nullable().describe("Null if it is not configured."),
  unit_tokens_per_minute: z
    .int()
    .nullable()
    .describe("Tokens per minute that one unit guarantees; null if it is not configured."),
  sold_units: z
    .int()
    .describe(
      "Units of keys that are neither revoked nor expired; for account holders, of their own " +
        "keys.",
    ),
  sold_tokens_per_minute: z.number().nullable().describe("What these units guarantee."),
  held_tokens_per_minute: z
    .number()
    .nullable()
    .describe("What the pool holds back for them: 60/59 of that."),
  tokens_per_minute: z.int().nullable().describe(`Its capacity. ${operatorsOnly}`),
  max_in_flight: z.int().nullable().describe("Maximum concurrent calls; null: unlimited."),
  on_demand_floor_percent: z
    .int()
    .nullable()
    .describe(`Percentage that is never sold. ${operatorsOnly}`),
  floor_tokens_per_minute: z.int().nullable().describe(`The same in tokens. ${operatorsOnly}`),
  sellable_units: z.int().nullable().describe(`Units that can be sold in all. ${operatorsOnly}`),
  units_left: z.int().nullable().describe(`Units that can still be sold. ${operatorsOnly}`),
  models: z.array(z.object({ environment: z.string(), alias: z.string() })),
  targets: z.array(z.string()).nullable().describe(`Targets of the pool. ${operatorsOnly}`),
};

export const poolSchema = z
  .object(poolFields)
  .meta({ id: "Pool", description: "Capacity that is sold to keys in units." });
export type PoolView = z.infer<typeof poolSchema>;

export const poolsSchema = z.object({ data: z.array(poolSchema) });

export const holderSchema = z.object({
  id: z.string(),
  account_id: z.string(),
  application: z.string(),
  environment: z.string(),
  plan: z.string(),
  provisioned_units: z.int(),
  expires_at: timeSchema.nullable(),
  disabled_at: timeSchema.nullable(),
});

export const poolKeysLimit = 500;

export const poolDetailsSchema = z
  .object({
    ...poolFields,
    keys: z
      .array(holderSchema)
      .describe(
        `Keys with units of it, newest first, at most ${poolKeysLimit}. For all: \`GET ` +
          "/admin/v1/keys?provisioned_pool=`.",
      ),
    has_more_keys: z.boolean(),
  })
  .meta({ id: "PoolDetails" });
