import { z } from "zod";
import { apis } from "../models/apis.ts";
import { chatFamilies, embeddingFamilies } from "../models/facts.ts";
import {
  camelCased,
  flag,
  identifier,
  requiredWholeNumber,
  text,
} from "../../../settings/values.ts";
import { repairFields } from "../../shared/config.ts";
import { capabilitiesSchema } from "./capabilities.ts";
import { regionName } from "./sites.ts";

/** The section of a target of kind `bedrock` for its model. */

const familyMeta = {
  title: "family",
  description: "Default: derived from `model`, unless that is an ARN or unknown.",
};

const profileArn = z
  .string()
  .regex(
    /^arn:aws[a-z-]*:bedrock:[a-z0-9-]+:[0-9]{12}:application-inference-profile\/[A-Za-z0-9:.-]{1,256}$/,
    "must be the ARN of an application inference profile",
  );

/** The other identifiers of the target's model. */
const callFields = {
  identifiers: z
    .record(regionName("Region."), text("Identifier."))
    .prefault({})
    .describe(
      "With `regions`: identifiers by region that are not `model` with the prefix of the " +
        "geography.",
    ),
  profiles: z
    .record(
      identifier("Environment."),
      z.union([profileArn, z.array(profileArn).min(1).max(16)]).transform((arns) => [arns].flat()),
    )
    .prefault({})
    .describe(
      "ARNs of application inference profiles, by environment; a list with one per region if " +
        "there are several.",
    ),
};

const guardrailSchema = z
  .strictObject({
    identifier: z
      .string()
      // The value is also sent in a header.
      .regex(/^[\x21-\x7e]{1,2048}$/, "must be the identifier or the ARN of a guardrail")
      .describe("Identifier or ARN."),
    version: z
      .string()
      .regex(/^(DRAFT|[1-9][0-9]{0,7})$/, "must be a number in quotes, or DRAFT")
      .describe("A number in quotes, or `DRAFT`."),
    trace: z
      .enum(["disabled", "enabled", "enabled_full"])
      .prefault("disabled")
      .describe("Trace for the provider's logs."),
    stream_processing: z
      .enum(["sync", "async"])
      .prefault("sync")
      .describe("Whether a stream waits for the guardrail."),
  })
  .transform(camelCased)
  .optional()
  .describe("Guardrail of the provider, for every request.");

export type Guardrail = NonNullable<z.output<typeof guardrailSchema>>;

const metadataProblem =
  "must be at most 256 letters, digits, spaces or any of ':_@$#=/+,-.', and keys not empty";
const mostMetadata = 16;

const requestMetadataSchema = z
  .record(
    z.string().regex(/^[a-zA-Z0-9\s:_@$#=/+,.-]{1,256}$/, metadataProblem),
    z.string().regex(/^[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}$/, metadataProblem),
  )
  .refine((pairs) => Object.keys(pairs).length <= mostMetadata, {
    error: `must have at most ${mostMetadata} keys`,
  })
  .prefault({})
  .describe("Keys and values for the provider's invocation logs, at most 16.");

const chatSection = z
  .strictObject({
    family: z
      .string()
      .optional()
      .meta({ ...familyMeta, examples: [...chatFamilies] }),
    ...callFields,
    api: z
      .enum(apis)
      .optional()
      .describe("Default: `converse` where the model speaks it, else one that it speaks."),
    capabilities: capabilitiesSchema,
    default_output_tokens: requiredWholeNumber([1, 100_000_000])
      .describe("Output cap for calls without one. Default: the model's maximum.")
      .optional(),
    ...repairFields,
    prompt_cache: z
      .enum(["as_sent", "auto"])
      .prefault("as_sent")
      .describe("`auto` adds cache points if callers set none."),
    validate_answers: flag(false).describe(
      "Checks answers against `response_format`: a mismatch is retried once, then an error.",
    ),
    guardrail: guardrailSchema,
    request_metadata: requestMetadataSchema,
    service_tier: z
      .enum(["default", "flex", "priority", "reserved"])
      .optional()
      .describe("Tier of every request. Default: callers choose with `service_tier`."),
    latency: z
      .enum(["standard", "optimized"])
      .optional()
      .describe("Latency mode of every request, for models that offer a choice."),
    additional_fields: z
      .record(z.string(), z.unknown())
      .prefault({})
      .describe("Model-specific fields, merged into `additionalModelRequestFields`."),
  })
  .optional();

/** The purposes of embeddings, in Cohere's terms. */
export const inputTypes = [
  "search_document",
  "search_query",
  "classification",
  "clustering",
] as const;
export type InputType = (typeof inputTypes)[number];

const embeddingSection = z
  .strictObject({
    family: z.enum(embeddingFamilies).optional().meta(familyMeta),
    ...callFields,
    input_type: z
      .enum(inputTypes)
      .prefault("search_document")
      .describe("Default purpose of embeddings of Cohere and Nova models."),
    truncate: z
      .enum(["none", "start", "end"])
      .prefault("none")
      .describe("Where Cohere and Nova models cut long inputs; `none` refuses them."),
  })
  .optional();

export const targetSections = { chat: chatSection, embedding: embeddingSection };

/** The sections that say nothing. */
export const emptySections = {
  chat: chatSection.unwrap().parse({}),
  embedding: embeddingSection.unwrap().parse({}),
};
