import { z } from "zod";
import { priceConfidences, type TokenClass } from "../../domain/money/price.ts";
import { numberText, timeSchema } from "./values.ts";

const usdSchema = z
  .string()
  .optional()
  .meta({
    description: "USD per 1M tokens, as a decimal text; absent: no price.",
    examples: ["3.3"],
  });

const rateFields = {
  input: usdSchema,
  cache_read: usdSchema,
  cache_write: usdSchema,
  cache_write_1h: usdSchema,
  output: usdSchema,
} satisfies Record<TokenClass, typeof usdSchema>;
export type RatesView = { [Name in TokenClass]?: string | undefined };

const tierFields = {
  ...rateFields,
  long_prompt: z
    .object({ over_tokens: z.int(), ...rateFields })
    .optional()
    .describe("Prices of the whole call if its input has more tokens; absent: they do not differ."),
};

export const priceSchema = z
  .object({
    ...tierFields,
    image: usdSchema.describe("USD for each image of an embedding; absent: images are tokens."),
    tiers: z.record(z.string(), z.object(tierFields)).describe("Other service tiers, by name."),
  })
  .meta({ id: "Price", description: "What a target costs." });
export type PriceView = z.infer<typeof priceSchema>;
export type TierView = Omit<PriceView, "tiers" | "image">;

export const targetPriceSchema = z
  .object({
    target: z.string().describe("`upstream/model`."),
    models: z.array(z.string()).describe("Aliases that it serves; none: it is not configured."),
    price: priceSchema.nullable().describe("Null: it is not priced, and its calls have no cost."),
    source: z.string().nullable().describe("Who says so."),
    confidence: z
      .enum(priceConfidences)
      .nullable()
      .describe("`configured` by the operator, or how well the sources of the shipped list agree."),
    since: z.iso
      .date()
      .nullable()
      .describe("First day of the price at its source, if it is known."),
  })
  .meta({ id: "TargetPrice" });
export type TargetPriceView = z.infer<typeof targetPriceSchema>;

const versionSchema = z
  .object({
    version: z.int(),
    valid_from: timeSchema.describe("Calls that arrive from then on have its prices."),
  })
  .meta({ id: "PriceVersion" });

export const pricesQuerySchema = z.strictObject({
  version: numberText({ min: 0, max: 999_999_999, initial: 0 }).describe(
    "The version to show. Default: the one in use.",
  ),
});

export const pricesSchema = z
  .object({
    version: z.int().nullable().describe("The version that is shown; null: none was published."),
    data: z.array(targetPriceSchema),
    versions: z.array(versionSchema).describe("The last 100, newest first."),
  })
  .meta({ id: "Prices" });
