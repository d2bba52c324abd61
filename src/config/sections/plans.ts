import { z } from "zod";
import { type JsonObject, objectOf } from "../../domain/json-fields.ts";
import { bedrockWeights, type TokenWeights } from "../../domain/limits/token-weights.ts";
import {
  planModes,
  uncappedOutputs,
  undecidedLimits,
  type Plan,
} from "../../domain/limits/plan.ts";
import { ownHeader } from "./hooks.ts";
import {
  duration,
  flag,
  identifier,
  requiredWholeNumber,
  wholeNumber,
} from "../../settings/values.ts";

const mostPerMinute = 1_000_000_000_000;
const limitKeys = ["requests_per_minute", "tokens_per_minute"] as const;

const mostWeight = 100;
const mustBeWeight = `must be from 0 to ${mostWeight} with at most two digits after the point, such as 1.25`;

function weight(about: string) {
  return z
    .union([z.number(), z.string()], { error: mustBeWeight })
    .prefault(1)
    .meta({ title: "number", description: `${about} From 0 to ${mostWeight}.` });
}

/** In hundredths, digit by digit. Undefined for anything else than a weight. */
function hundredthsOf(written: string | number): number | undefined {
  const [, units, rest = ""] = /^(\d{1,3})(?:\.(\d{1,2}))?$/.exec(String(written)) ?? [];
  const hundredths = Number(`${units}${rest.padEnd(2, "0")}`);
  return hundredths <= mostWeight * 100 ? hundredths : undefined;
}

const tokenWeightsSchema = z
  .union(
    [
      z.literal("bedrock"),
      z.strictObject({
        cached_input: weight("What a token of input counts that came from the provider's cache."),
        cache_write: weight("What a token of input counts that went into the provider's cache."),
        output: weight("What a token of output counts, reasoning included."),
      }),
    ],
    { error: "must be bedrock, or a map of cached_input, cache_write and output" },
  )
  .transform((written, context): TokenWeights => {
    if (written === "bedrock") return bedrockWeights;
    const read = (key: keyof typeof written): number => {
      const hundredths = hundredthsOf(written[key]);
      if (hundredths !== undefined) return hundredths;
      context.issues.push({ code: "custom", path: [key], message: mustBeWeight, input: written });
      return 0;
    };
    return {
      cachedInput: read("cached_input"),
      cacheWrite: read("cache_write"),
      output: read("output"),
    };
  });

const planSchema = z
  .strictObject({
    requests_per_minute: requiredWholeNumber([1, mostPerMinute])
      .describe("Maximum requests in any 60 seconds.")
      .optional(),
    tokens_per_minute: requiredWholeNumber([1, mostPerMinute])
      .describe("Maximum tokens in any 60 seconds.")
      .optional(),
    custom: flag(false).describe("Whether each key of the plan has its own limits."),
    mode: z
      .enum(planModes)
      .default("enforce")
      .describe(
        "`audit`: the limits refuse nothing; what they would refuse is counted, and told in " +
          "the header `x-sluice-would-refuse`.",
      ),
    provisioned: flag(false).describe("Keys may buy provisioned throughput."),
    queue_timeout: duration("0s", ["0s", "10m"]).describe(
      "How long a call waits if its pool or upstream is full.",
    ),
    idempotency: flag(false).describe(
      "Repeats with the same `Idempotency-Key` get the stored answer.",
    ),
    responses: z
      .strictObject({
        keep: duration("1h", ["0s", "7d"]).describe(
          "How long they and their input are stored, encrypted, unless the caller sends `store: " +
            "false`. `0s`: not at all.",
        ),
      })
      .prefault({})
      .describe("Answers of `POST /v1/responses`."),
    uncapped: z
      .enum(uncappedOutputs)
      .default("debt")
      .describe(
        "Calls without an output cap. `debt` reserves an estimate, and later minutes pay back " +
          "use beyond the limit. `cap` sends the estimate as the cap. `maximum` reserves the " +
          "model's longest answer.",
      ),
    overrun_factor: wholeNumber(3, [0, 50]).describe(
      "With `uncapped: debt`: how many times `tokens_per_minute` running uncapped calls may " +
        "together use beyond their reservations; further ones get 429.",
    ),
    token_weights: tokenWeightsSchema
      .optional()
      .describe(
        "What a token counts in `tokens_per_minute`. A map of `cached_input`, `cache_write` " +
          "and `output`, each from 0 to 100 with at most two decimals. Or `bedrock`, as in its " +
          "own quota: cached input 0, output by model. Default: each counts 1.",
      ),
    end_user_header: ownHeader
      .optional()
      .describe(
        "Header that names the end user, before what bodies say; its holder must set or remove " +
          "it.",
      ),
    each_end_user: z
      .strictObject({
        requests_per_minute: requiredWholeNumber([1, mostPerMinute]).describe(
          "Maximum requests in any 60 seconds.",
        ),
        tokens_per_minute: requiredWholeNumber([1, mostPerMinute]).describe(
          "Maximum tokens in any 60 seconds.",
        ),
      })
      .optional()
      .describe("What each end user may use of a key's limits. Default: no limits of their own."),
    when_limits_unavailable: z
      .enum(undecidedLimits)
      .default("local")
      .describe(
        "While a shared `limits.store` is lost or has lost data, `local` grants each process " +
          "its share; with `closed` calls get 503.",
      ),
  })
  .superRefine((plan, context) => {
    for (const key of limitKeys) {
      if (plan.custom === (plan[key] === undefined)) continue;
      const message = plan.custom
        ? "must not be set on a custom plan: each key brings its values"
        : "is required, unless the plan is custom";
      context.addIssue({ code: "custom", path: [key], message });
    }
  });

/** Plans that exist without a word in the file, which may change each of their values. */
export const defaultPlans = {
  pilot: { requests_per_minute: 60, tokens_per_minute: 100_000 },
  standard: { requests_per_minute: 300, tokens_per_minute: 500_000 },
  pro: { requests_per_minute: 1000, tokens_per_minute: 2_000_000, provisioned: true },
  enterprise: { custom: true, provisioned: true },
};

export const plansSchema = z
  .preprocess(withDefaultPlans, z.record(identifier("Name of the plan."), planSchema))
  .prefault({})
  .describe(
    "Sets of limits, by name. The defaults, with requests and tokens per minute: `pilot` " +
      "(60, 100000), `standard` (300, 500000), `pro` (1000, 2000000, provisioned) and " +
      "`enterprise` (custom, provisioned). The file changes single values; limits end " +
      "`custom`, and `custom: true` ends limits.",
  )
  .transform(buildPlans);

/** Adds the default plans, and to those that the file names what it does not write of them. */
export function withDefaultPlans(plans: unknown): unknown {
  const written = objectOf(plans);
  if (written === undefined) return plans;
  const defaults = Object.entries(defaultPlans).map(
    ([name, plan]) => [name, withDefault(plan, written[name])] as const,
  );
  return { ...defaultPlans, ...written, ...Object.fromEntries(defaults) };
}

/** Limits and `custom` exclude each other: those that are written end the other's default. */
function withDefault(initial: JsonObject, plan: unknown = {}): unknown {
  const written = objectOf(plan);
  if (written === undefined) return plan;
  const isCustom = written["custom"] === true || written["custom"] === "true";
  const isLimited = limitKeys.some((key) => key in written);
  const ended: readonly string[] = isCustom ? limitKeys : isLimited ? ["custom"] : [];
  const kept = Object.entries(initial).filter(([key]) => !ended.includes(key));
  return { ...Object.fromEntries(kept), ...written };
}

function buildPlans(
  plans: Readonly<Record<string, z.output<typeof planSchema>>>,
): ReadonlyMap<string, Plan> {
  const built = Object.entries(plans).map(([name, plan]) => ({
    name,
    limits: buildLimits(plan),
    mode: plan.mode,
    tokenWeights: plan.token_weights,
    provisioned: plan.provisioned,
    queueTimeoutMs: plan.queue_timeout,
    isIdempotent: plan.idempotency,
    responsesKeepMs: plan.responses.keep,
    uncapped: plan.uncapped,
    overrunFactor: plan.overrun_factor,
    whenLimitsUnavailable: plan.when_limits_unavailable,
    endUserHeader: plan.end_user_header,
    eachEndUser: plan.each_end_user && {
      requestsPerMinute: plan.each_end_user.requests_per_minute,
      tokensPerMinute: plan.each_end_user.tokens_per_minute,
    },
  }));
  return new Map(built.map((plan) => [plan.name, plan]));
}

function buildLimits(plan: z.output<typeof planSchema>): Plan["limits"] {
  const { requests_per_minute: requestsPerMinute, tokens_per_minute: tokensPerMinute } = plan;
  if (requestsPerMinute === undefined || tokensPerMinute === undefined) return undefined;
  return { requestsPerMinute, tokensPerMinute };
}
