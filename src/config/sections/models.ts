import { z } from "zod";
import {
  type Model,
  modelCapabilities,
  type ModelCapabilities,
  type ModelKind,
  type Target,
} from "../../domain/model.ts";
import {
  identifier,
  modelAlias,
  optionalDuration,
  requiredFlag,
  requiredWholeNumber,
  text,
  wholeNumber,
} from "../../settings/values.ts";
import { kindNamed, sitesOf, type FileTarget, type UpstreamKind } from "../../upstreams/kind.ts";
import { targetPriceSchema } from "./prices.ts";
import type { UpstreamsFile } from "./upstreams.ts";

const mostTokens = 100_000_000;

const targetFields = {
  upstream: identifier("Name of an upstream."),
  model: text("The upstream's own identifier of the model.").regex(
    /^(?:\S(?:[\s\S]*\S)?)?$/,
    "must not begin or end with white space",
  ),
  priority: wholeNumber(1, [1, 1000]).describe("Lower numbers are tried first."),
  weight: wholeNumber(1, [1, 1_000_000]).describe("Share of calls among targets of one priority."),
  pool: identifier("Pool to which this target's capacity belongs.").optional(),
  price: targetPriceSchema,
};

/** The common fields of targets, and a section for each upstream kind that has its own. */
function targetSchema(kinds: readonly UpstreamKind[], kindOfModel: ModelKind) {
  const ofKinds = kinds.flatMap(({ name, targetSections }) =>
    targetSections === undefined ? [] : [[name, targetSections[kindOfModel]] as const],
  );
  return z
    .strictObject({ ...targetFields, ...Object.fromEntries(ofKinds) })
    .transform(({ upstream, model, priority, weight, pool, price, ...rest }) => {
      const sections: Readonly<Record<string, unknown>> = rest;
      return { upstream, model, priority, weight, pool, price, sections };
    });
}

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
    description: "Shown by the model list; Unix seconds are taken, too.",
  });

/** Undefined for a date that does not exist, such as the 30th of February. */
function readCreated(value: string): number | undefined {
  if (!value.includes("-")) return Number(value);
  const milliseconds = Date.parse(`${value}T00:00:00Z`);
  if (Number.isNaN(milliseconds)) return undefined;
  const isReal = new Date(milliseconds).toISOString().startsWith(value);
  return isReal ? milliseconds / 1000 : undefined;
}

const modelFields = {
  context_window: requiredWholeNumber([1, mostTokens]).describe(
    "Maximum tokens of input and output together.",
  ),
  created: createdSchema,
  timeouts: z
    .strictObject({
      first_byte: optionalDuration("5m", ["10ms", "1h"]).describe(
        "From the request to the first byte of a streamed answer.",
      ),
      idle: optionalDuration("3m", ["10ms", "1h"]).describe(
        "Maximum time without a byte within an answer.",
      ),
      total: optionalDuration("30m", ["10ms", "24h"]).describe(
        "From the arrival of a call to the end of its answer.",
      ),
    })
    .prefault({})
    .describe("As at upstreams, for this model."),
};

const mostTargets = 64;
const targetsAbout = "Where the model is served, by priority and weight.";

const kindAbout = "`chat` or `embedding`.";

const capabilitiesSchema = z
  .strictObject({
    tools: requiredFlag().optional().describe("Calls tools."),
    images: requiredFlag().optional().describe("Reads images."),
    documents: requiredFlag().optional().describe("Reads documents."),
    reasoning: requiredFlag().optional().describe("Thinks before it answers."),
    json_schema: requiredFlag().optional().describe("Answers by a JSON schema."),
  })
  .prefault({})
  .describe("Shown by the model list, where the targets' kinds do not know.");

function chatModelSchema(kinds: readonly UpstreamKind[]) {
  return z
    .strictObject({
      kind: z.literal("chat").describe(kindAbout),
      ...modelFields,
      targets: z.array(targetSchema(kinds, "chat")).min(1).max(mostTargets).describe(targetsAbout),
      max_output_tokens: requiredWholeNumber([1, mostTokens])
        .describe("Maximum tokens of an answer. Default: 4096, or `context_window` if smaller.")
        .optional(),
      capabilities: capabilitiesSchema,
      hedge_after: optionalDuration("5s", ["10ms", "10m"]).describe(
        "Time without an answer until a second target is tried, too; both may be billed. " +
          "Default: never.",
      ),
      fallbacks: z
        .array(modelAlias("Alias of a chat model."))
        .max(8)
        .prefault([])
        .describe(
          "Models that serve if no target can, or if the input is too long for this model only.",
        ),
    })
    .refine((model) => (model.max_output_tokens ?? 1) <= model.context_window, {
      path: ["max_output_tokens"],
      error: "must not be larger than context_window",
    });
}

function embeddingModelSchema(kinds: readonly UpstreamKind[]) {
  return z.strictObject({
    kind: z.literal("embedding").describe(kindAbout),
    ...modelFields,
    targets: z
      .array(targetSchema(kinds, "embedding"))
      .min(1)
      .max(mostTargets)
      .describe(targetsAbout),
    fan_out: wholeNumber(64, [1, 64]).describe(
      "Maximum concurrent requests of one call with many inputs.",
    ),
  });
}

export function modelsSchema(kinds: readonly UpstreamKind[]) {
  return z
    .record(
      modelAlias("Alias of the model."),
      z.discriminatedUnion("kind", [chatModelSchema(kinds), embeddingModelSchema(kinds)]),
    )
    .refine((models) => Object.keys(models).length > 0, "must have at least one model")
    .describe("Models by alias.");
}

export type ModelsFile = z.output<ReturnType<typeof modelsSchema>>;
type ModelFile = ModelsFile[string];
type TargetFile = ModelFile["targets"][number];

export interface ModelSources {
  readonly upstreams: UpstreamsFile;
  readonly models: ModelsFile;
  readonly kinds: readonly UpstreamKind[];
}

/** The model as an environment offers it; undefined for an unknown name. */
export function buildModel(
  alias: string,
  environment: string,
  sources: ModelSources,
): Model | undefined {
  const model = sources.models[alias];
  if (model === undefined) return undefined;
  return {
    alias,
    kind: model.kind,
    created: model.created,
    contextWindow: model.context_window,
    targets: model.targets.flatMap((target) =>
      buildTargets(target, { environment, kindOfModel: model.kind }, sources),
    ),
    timeouts: {
      firstByteMs: model.timeouts.first_byte,
      idleMs: model.timeouts.idle,
      totalMs: model.timeouts.total,
    },
    ...buildKindOfModel(model),
    ...(model.kind === "chat" && { capabilities: capabilitiesOf(model, sources) }),
  };
}

/** The file's own, else what all targets have. */
function capabilitiesOf(
  model: Extract<ModelFile, { readonly kind: "chat" }>,
  { upstreams, kinds }: ModelSources,
): ModelCapabilities {
  const ofTargets = model.targets.map(({ upstream: name, model: identifier, sections }) => {
    const configured = upstreams[name];
    if (configured === undefined) return {};
    const kind = kindNamed(kinds, configured.kind);
    const upstream = { name, fields: configured.fields };
    const target = { model: identifier, upstream, section: sections[kind.name] };
    return kind.capabilities?.(target) ?? {};
  });
  const known: { -readonly [Name in keyof ModelCapabilities]: ModelCapabilities[Name] } = {};
  for (const name of modelCapabilities) {
    const all = ofTargets.map((each) => each[name]);
    const common = all.includes(false) ? false : all.includes(undefined) ? undefined : true;
    const value = model.capabilities[name] ?? common;
    if (value !== undefined) known[name] = value;
  }
  return known;
}

const defaultMaxOutputTokens = 4096;

function buildKindOfModel(
  model: ModelFile,
): Pick<Model, "maxOutputTokens" | "fanOut" | "hedgeAfterMs" | "fallbacks"> {
  switch (model.kind) {
    case "chat":
      return {
        maxOutputTokens:
          model.max_output_tokens ?? Math.min(model.context_window, defaultMaxOutputTokens),
        fanOut: 1,
        hedgeAfterMs: model.hedge_after,
        fallbacks: model.fallbacks,
      };
    case "embedding":
      return { maxOutputTokens: undefined, fanOut: model.fan_out };
  }
}

/** The kind's own sections are left out: the settings of the upstream contain them. */
function buildTargets(
  { upstream: name, model: identifier, priority, weight, pool, price, sections }: TargetFile,
  { environment, kindOfModel }: { readonly environment: string; readonly kindOfModel: ModelKind },
  { upstreams, kinds }: ModelSources,
): readonly Target[] {
  const configured = upstreams[name];
  if (configured === undefined) return [];
  const kind = kindNamed(kinds, configured.kind);
  const upstream = { name, fields: configured.fields };
  const target = { model: identifier, upstream, section: sections[kind.name] };
  const sites = sitesOf(kind, target);
  const outputQuotaWeight = kind.outputQuotaWeight?.(target);
  const promptCache = kindOfModel === "chat" ? kind.promptCache?.(target) : undefined;
  return sites.map(({ upstream: at, turn, ...site }) => {
    const model = site.modelFor[environment] ?? site.model;
    // Computed in hundredths, because a sum of fractions is not exact.
    const preference = { priority: (priority * 100 + turn) / 100, weight, pool };
    const facts = { price, promptCache, outputQuotaWeight };
    return { id: `${at}/${model}`, upstream: at, model, ...preference, ...facts };
  });
}

/** The targets of an upstream, with their sections for its kind. */
export function targetsAt(models: ModelsFile, upstream: string, kind: string): FileTarget[] {
  return Object.entries(models).flatMap(([alias, model]) => {
    const targets = model.targets.filter((target) => target.upstream === upstream);
    return targets.map(({ model: identifier, sections }): FileTarget => {
      const target = { alias, model: identifier, section: sections[kind] };
      switch (model.kind) {
        case "chat":
          return { ...target, kind: model.kind, maxOutputTokens: model.max_output_tokens };
        case "embedding":
          return { ...target, kind: model.kind };
      }
    });
  });
}
