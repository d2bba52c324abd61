import { z } from "zod";
import { microOfUsd } from "../../domain/money/usd.ts";
import { requiredWholeNumber, text } from "../../settings/values.ts";

/** USD per 1M tokens. With more, and 100M tokens of each class, a call's cost would not be exact. */
const mostPerMillion = 10_000;
const mostPerImage = 1_000;
const mostEntries = 2_000;

/** A decimal number of USD, or a text of one, which is read digit by digit; becomes micro-USD. */
function usd(about: string, most: number) {
  const mustBe = `must be USD from 0 to ${most} with at most six digits after the point, such as 3.75`;
  return z
    .union([z.number(), z.string()], { error: mustBe })
    .transform((value, context) => {
      const micro = microOfUsd(String(value));
      if (micro !== undefined && micro <= most * 1e6) return micro;
      context.issues.push({ code: "custom", message: mustBe, input: value });
      return z.NEVER;
    })
    .optional()
    .meta({ title: "USD", description: `${about} From 0 to ${most}.` });
}

const rateFields = {
  input: usd("USD per 1M tokens of input that is not cached.", mostPerMillion),
  cache_read: usd("USD per 1M tokens read from a cache.", mostPerMillion),
  cache_write: usd("USD per 1M tokens written to a cache for some minutes.", mostPerMillion),
  cache_write_1h: usd("USD per 1M tokens written to a cache for an hour.", mostPerMillion),
  output: usd("USD per 1M tokens of output, reasoning included.", mostPerMillion),
};

const tierFields = {
  ...rateFields,
  long_prompt: z
    .strictObject({
      over_tokens: requiredWholeNumber([1, 100_000_000]).describe(
        "Input tokens, cached ones included, above which the whole call has these prices.",
      ),
      ...rateFields,
    })
    .optional()
    .describe("Prices of calls with long prompts."),
};

const tiers = z
  .record(
    z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, "must be the name of a tier, such as priority"),
    z.strictObject(tierFields),
  )
  .optional()
  .describe(
    "Prices of other service tiers, such as `priority` and `flex`; `provisioned` is for " +
      "calls within provisioned throughput, which cost nothing by default.",
  );

const image = usd("USD for each image of an embedding, whatever the tier.", mostPerImage);

const priceFields = { ...tierFields, image, tiers };

function hasPrice(price: object): boolean {
  return "image" in price || Object.keys(rateFields).some((name) => Object.hasOwn(price, name));
}

const noPrice = "must have at least one price, such as input";

const targetPrice =
  "must be USD per 1M tokens, such as { input: 0.2, cache_read: 0.1, output: 0.6 }";

/** The price of one target. */
export const targetPriceSchema = z
  .strictObject(priceFields, {
    error: ({ code }) => (code === "invalid_type" ? targetPrice : undefined),
  })
  .refine(hasPrice, targetPrice)
  .optional()
  .describe("Price of this target, before `prices` and the shipped list.");

const day = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}$/, "must be a date such as 2026-12-01")
  .refine(
    (date) => new Date(`${date}T00:00:00Z`).toJSON()?.startsWith(date) === true,
    "must be a date that exists",
  );

const entryFields = {
  provider: text(
    "`bedrock`, `openai` or `anthropic`; of other upstreams, the host of their `base_url`.",
  ),
  model: text("The provider's identifier, without the prefix of a geography."),
  scope: text(
    "Where it applies, at Bedrock: `global`, a geography such as `us`, a region, or " +
      "`regional` for all but `global`.",
  ).prefault("any"),
  valid_from: day
    .optional()
    .meta({ title: "date", description: "First day of the price, in UTC. Default: at once." }),
  source: z.string().max(200).optional().describe("Where the price is from."),
  ...priceFields,
};

const entrySchema = z
  .strictObject(entryFields)
  .refine(hasPrice, noPrice)
  .transform(({ provider, model, scope, valid_from: validFrom, source, ...price }) => {
    return { provider, model, scope, validFrom, source, price };
  });

/** A line of a list of prices. */
export type ListedPrice = z.output<typeof entrySchema>;

export const pricesSchema = z
  .array(entrySchema)
  .max(mostEntries)
  .superRefine((entries, context) => {
    const seen = new Map<string, number>();
    for (const [index, { provider, model, scope, validFrom }] of entries.entries()) {
      const key = JSON.stringify([provider, model, scope, validFrom]);
      const earlier = seen.get(key);
      seen.set(key, earlier ?? index);
      if (earlier === undefined) continue;
      const message = `repeats prices[${earlier}]: same provider, model, scope and date`;
      context.addIssue({ code: "custom", path: [index], message });
    }
  })
  .prefault([])
  .describe("List of prices, before the shipped ones. `sluice prices list` shows what applies.");

/** The form of the shipped list: that of the section, and how sure each price is. */
export const defaultPricesSchema = z.array(
  z
    .strictObject({ ...entryFields, confidence: z.enum(["high", "medium", "low"]) })
    .transform(
      ({ provider, model, scope, valid_from: validFrom, source, confidence, ...price }) => {
        return { provider, model, scope, validFrom, source, confidence, price };
      },
    ),
);
