import { z } from "zod";
import { chatFamilies, embeddingFamilies } from "../models/model-families.ts";
import { inputTypes, type Guardrail } from "../settings.ts";
import { flag, identifier, requiredWholeNumber, text } from "../../../settings/values.ts";
import { capabilitiesSchema } from "./capabilities.ts";
import { regionName } from "./sites.ts";

/** The section of a target of kind `bedrock` for its model. */

const familyMeta = {
  title: "family",
  description:
    "Family of the model. Read from the identifier unless that is an ARN or names an unknown model.",
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
      "At an upstream with `regions`: the model's identifier in a region, where it is another than " +
        "`model` with the prefix of the region's geography.",
    ),
  profiles: z
    .record(
      identifier("Environment."),
      z.union([profileArn, z.array(profileArn).min(1).max(16)]).transform((arns) => [arns].flat()),
    )
    .prefault({})
    .describe(
      "ARNs of application inference profiles of the model, by the environment whose calls use " +
        "them, for cost reports of the provider; of several regions, a list with one for each.",
    ),
};

const guardrailSchema = z
  .strictObject({
    identifier: z
      .string()
      // Also sent in a header.
      .regex(/^[\x21-\x7e]{1,2048}$/, "must be the identifier or the ARN of a guardrail")
      .describe("Identifier or ARN of the guardrail."),
    version: z
      .string()
      .regex(/^(DRAFT|[1-9][0-9]{0,7})$/, "must be a number in quotes, or DRAFT")
      .describe("Version of the guardrail: a number in quotes, or `DRAFT`."),
    trace: z
      .enum(["disabled", "enabled", "enabled_full"])
      .prefault("disabled")
      .describe("Whether the guardrail tells what it did, for the provider's logs."),
    stream_processing: z
      .enum(["sync", "async"])
      .prefault("sync")
      .describe("Whether a stream waits for the guardrail."),
  })
  .transform(({ stream_processing: streamProcessing, ...guardrail }): Guardrail => ({
    ...guardrail,
    streamProcessing,
  }))
  .optional()
  .describe("Guardrail of the provider, for every request.");

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
    family: z.enum(chatFamilies).optional().meta(familyMeta),
    ...callFields,
    capabilities: capabilitiesSchema,
    default_output_tokens: requiredWholeNumber({
      about:
        "Cap of answers whose caller gives none; without it, as much as the model can write. The " +
        "provider reserves the cap from your quota.",
      min: 1,
      max: 100_000_000,
    }).optional(),
    drop_unsupported: flag(
      "Drops request fields that the model cannot honour, where callers would else get 400.",
      false,
    ),
    conversation: z
      .enum(["repair", "strict"])
      .prefault("repair")
      .describe(
        "Whether conversations that OpenAI takes and the provider does not, for want of a turn of " +
          "the user, get one; `strict` refuses them.",
      ),
    prompt_cache: z
      .enum(["as_sent", "auto"])
      .prefault("as_sent")
      .describe(
        "`auto` puts cache points behind tools, instructions and the user's last turns where callers put none.",
      ),
    validate_answers: flag(
      "Checks answers against the `response_format` of their request: one that does not match is " +
        "asked for again, and then an error.",
      false,
    ),
    guardrail: guardrailSchema,
    request_metadata: requestMetadataSchema,
    service_tier: z
      .enum(["default", "flex", "priority", "reserved"])
      .optional()
      .describe("Service tier of every request. Without it callers choose with `service_tier`."),
    latency: z
      .enum(["standard", "optimized"])
      .optional()
      .describe("Latency of every request, for models that offer a choice."),
    additional_fields: z
      .record(z.string(), z.unknown())
      .prefault({})
      .describe("Fields of the model's own, merged into `additionalModelRequestFields`."),
  })
  .optional();

const embeddingSection = z
  .strictObject({
    family: z.enum(embeddingFamilies).optional().meta(familyMeta),
    ...callFields,
    input_type: z
      .enum(inputTypes)
      .prefault("search_document")
      .describe("What embeddings of Cohere's and Nova's models are for, where callers do not say."),
    truncate: z
      .enum(["none", "start", "end"])
      .prefault("none")
      .describe(
        "Where Cohere's and Nova's models cut inputs that are too long; `none` refuses them.",
      ),
  })
  .optional();

export const targetSections = { chat: chatSection, embedding: embeddingSection };

export type ChatSection = NonNullable<z.output<typeof chatSection>>;
export type EmbeddingSection = NonNullable<z.output<typeof embeddingSection>>;
