import { z } from "zod";
import { uncappedOutputs } from "../../domain/limits/plan.ts";
import {
  bedrockChatTargetSchema,
  bedrockEmbeddingTargetSchema,
} from "../bedrock/bedrock-target-schema.ts";
import {
  duration,
  flag,
  identifier,
  modelAlias,
  optionalDuration,
  requiredWholeNumber,
  text,
  wholeNumber,
} from "./values.ts";

/** What callers see: models, the environments that offer them, and the plans that limit keys. */

const mostTokens = 100_000_000;

const targetFields = {
  upstream: identifier("Name of an upstream."),
  model: text("The upstream's own identifier of the model.").regex(
    /^(?:\S(?:[\s\S]*\S)?)?$/,
    "must not begin or end with white space",
  ),
  priority: wholeNumber({
    about: "Lower numbers are tried first.",
    min: 1,
    max: 1000,
    initial: 1,
  }),
  weight: wholeNumber({
    about: "Share of the calls among targets of one priority.",
    min: 1,
    max: 1_000_000,
    initial: 1,
  }),
  pool: identifier("Name of the pool whose capacity this target is.").optional(),
};

/** Beside what all targets have: a section for each upstream kind that must know more. */
const chatTargetSchema = z.strictObject({ ...targetFields, bedrock: bedrockChatTargetSchema });
const embeddingTargetSchema = z.strictObject({
  ...targetFields,
  bedrock: bedrockEmbeddingTargetSchema,
});

const createdProblem = "must be a date such as 2025-05-14, or Unix seconds";

const createdSchema = z
  .union(
    [
      z.int().min(0).max(253_402_300_799),
      z.string().regex(/^(\d{4}-\d{2}-\d{2}|\d{1,12})$/, createdProblem),
    ],
    {
      error: createdProblem,
    },
  )
  .transform((value, context) => {
    const seconds = typeof value === "number" ? value : readCreated(value);
    if (seconds !== undefined) return seconds;
    context.issues.push({ code: "custom", message: createdProblem, input: value });
    return z.NEVER;
  })
  .prefault("2025-01-01")
  .meta({
    title: "date",
    description: "Shown by the model list: a date, or Unix seconds.",
  });

/** Refuses what a calendar does not have, such as the 30th of February. */
function readCreated(value: string): number | undefined {
  if (!value.includes("-")) return Number(value);
  const milliseconds = Date.parse(`${value}T00:00:00Z`);
  if (Number.isNaN(milliseconds)) return undefined;
  const isReal = new Date(milliseconds).toISOString().startsWith(value);
  return isReal ? milliseconds / 1000 : undefined;
}

const modelFields = {
  context_window: requiredWholeNumber({
    about: "Most tokens of input and output together.",
    min: 1,
    max: mostTokens,
  }),
  created: createdSchema,
  timeouts: z
    .strictObject({
      first_byte: optionalDuration({
        about: "From the request to the first byte of the answer.",
        min: "10ms",
        max: "1h",
        example: "5m",
      }),
      idle: optionalDuration({
        about: "Longest silence within an answer.",
        min: "10ms",
        max: "1h",
        example: "3m",
      }),
      total: optionalDuration({
        about: "From the arrival of a call to the end of its answer.",
        min: "10ms",
        max: "24h",
        example: "30m",
      }),
    })
    .prefault({})
    .describe("Where this model takes another time than its upstreams say."),
};

const mostTargets = 64;
const targetsAbout = "Where the model is served, by priority and weight.";

const kindAbout = "`chat` or `embedding`.";

export const chatModelSchema = z
  .strictObject({
    kind: z.literal("chat").describe(kindAbout),
    ...modelFields,
    targets: z.array(chatTargetSchema).min(1).max(mostTargets).describe(targetsAbout),
    max_output_tokens: requiredWholeNumber({
      about:
        "Most tokens of one answer. Without it: 4096, or the context window when that is smaller.",
      min: 1,
      max: mostTokens,
    }).optional(),
    hedge_after: optionalDuration({
      about:
        "Without the first event of a stream, or a whole answer, after this time, a second target is asked " +
        "as well. The first to answer serves; the other may be billed. Without it: never.",
      min: "10ms",
      max: "10m",
      example: "5s",
    }),
    fallbacks: z
      .array(modelAlias("Alias of a chat model."))
      .max(8)
      .prefault([])
      .describe(
        "Models whose targets serve when none of this model's own can, and for inputs that are too long " +
          "for this model and not for them. Keys that may not use them are served without.",
      ),
  })
  .refine((model) => (model.max_output_tokens ?? 1) <= model.context_window, {
    path: ["max_output_tokens"],
    error: "must not be larger than context_window",
  });

export const embeddingModelSchema = z.strictObject({
  kind: z.literal("embedding").describe(kindAbout),
  ...modelFields,
  targets: z.array(embeddingTargetSchema).min(1).max(mostTargets).describe(targetsAbout),
  fan_out: wholeNumber({
    about: "Most simultaneous upstream requests of one call with many inputs.",
    min: 1,
    max: 64,
    initial: 4,
  }),
});

export const modelsSchema = z
  .record(
    modelAlias("Alias of the model."),
    z.discriminatedUnion("kind", [chatModelSchema, embeddingModelSchema]),
  )
  .refine((models) => Object.keys(models).length > 0, "must have at least one model")
  .describe("What callers may name, by alias.");

const hostProblem = "must be a host name without port, such as models.example.com, or '*'";

export const environmentsSchema = z
  .array(
    z.strictObject({
      name: identifier("Name of the environment; keys belong to it."),
      hosts: z
        .array(
          z
            .string()
            .regex(/^(\*|\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([A-Za-z0-9._-]{0,252}))$/, hostProblem)
            .transform((host) => host.toLowerCase()),
        )
        .min(1)
        .max(1000)
        .describe("Hosts that callers use, exactly, without port; `*` is every other host."),
      models: z
        .array(text("Alias."))
        .min(1)
        .describe("Aliases of the models that this environment offers; `*` is all."),
    }),
  )
  .min(1)
  .max(1000)
  .describe("Deployment stages with their own hosts, models and keys.");

const mostPerMinute = 1_000_000_000_000;

export const planSchema = z
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

/** Plans that exist unless the file says otherwise. */
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
  );
