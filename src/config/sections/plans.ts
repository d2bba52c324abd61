import { z } from "zod";
import { uncappedOutputs, type Plan } from "../../domain/limits/plan.ts";
import {
  duration,
  flag,
  identifier,
  requiredWholeNumber,
  wholeNumber,
} from "../../settings/values.ts";

const mostPerMinute = 1_000_000_000_000;

const planSchema = z
  .strictObject({
    requests_per_minute: requiredWholeNumber({
      about: "Most requests in any 60 seconds.",
      min: 1,
      max: mostPerMinute,
    }).optional(),
    tokens_per_minute: requiredWholeNumber({
      about: "Most tokens in any 60 seconds.",
      min: 1,
      max: mostPerMinute,
    }).optional(),
    custom: flag("The plan has no limits of its own: each key brings its values.", false),
    provisioned: flag("Keys on this plan may buy provisioned throughput.", false),
    queue_timeout: duration({
      about: "How long a call waits for a place when its pool or upstream is full; 0s: not at all.",
      min: "0s",
      max: "10m",
      initial: "0s",
    }),
    idempotency: flag(
      "Whether `Idempotency-Key` makes a repeated call get the answer of the first. Answers are " +
        "then stored, encrypted, for 24 hours.",
      false,
    ),
    uncapped: z
      .enum(uncappedOutputs)
      .default("debt")
      .describe(
        "Calls that do not cap their output: `debt` reserves a guess, and what is used beyond the " +
          "limit is paid by the minutes that follow; `cap` sends the guess upstream as the cap; " +
          "`maximum` reserves all that the model can answer, so that most callers must set a cap.",
      ),
    overrun_factor: wholeNumber({
      about:
        "How many times `tokens_per_minute` all uncapped calls under way may use at most beyond what " +
        "is counted for them; 429 beyond it. Under `uncapped: debt`.",
      min: 0,
      max: 50,
      initial: 3,
    }),
  })
  .superRefine((plan, context) => {
    for (const key of ["requests_per_minute", "tokens_per_minute"] as const) {
      if (plan.custom === (plan[key] === undefined)) continue;
      const message = plan.custom
        ? "must not be set on a custom plan: each key brings its values"
        : "is required, unless the plan is custom";
      context.addIssue({ code: "custom", path: [key], message });
    }
  });

/** Plans that exist unless the file replaces them. */
export const defaultPlans = {
  pilot: { requests_per_minute: 60, tokens_per_minute: 100_000 },
  standard: { requests_per_minute: 300, tokens_per_minute: 500_000 },
  pro: { requests_per_minute: 1000, tokens_per_minute: 2_000_000, provisioned: true },
  enterprise: { custom: true, provisioned: true },
};

export const plansSchema = z
  .record(identifier("Name of the plan."), planSchema)
  .prefault({})
  .describe(
    "Sets of limits, by name. Unless the file replaces them there are, with requests and tokens " +
      "per minute, `pilot` (60, 100000), `standard` (300, 500000), `pro` (1000, 2000000, " +
      "provisioned) and `enterprise` (custom, provisioned).",
  )
  .transform(buildPlans);

function buildPlans(
  plans: Readonly<Record<string, z.output<typeof planSchema>>>,
): ReadonlyMap<string, Plan> {
  const built = new Map<string, Plan>();
  const defaults = Object.entries(defaultPlans).map(
    ([name, plan]) => [name, planSchema.parse(plan)] as const,
  );
  for (const [name, plan] of [...defaults, ...Object.entries(plans)]) {
    built.set(name, {
      name,
      limits: buildLimits(plan),
      provisioned: plan.provisioned,
      queueTimeoutMs: plan.queue_timeout,
      isIdempotent: plan.idempotency,
      uncapped: plan.uncapped,
      overrunFactor: plan.overrun_factor,
    });
  }
  return built;
}

function buildLimits(plan: z.output<typeof planSchema>): Plan["limits"] {
  const { requests_per_minute: requestsPerMinute, tokens_per_minute: tokensPerMinute } = plan;
  if (requestsPerMinute === undefined || tokensPerMinute === undefined) return undefined;
  return { requestsPerMinute, tokensPerMinute };
}
