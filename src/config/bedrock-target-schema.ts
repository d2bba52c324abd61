import { z } from "zod";
import { chatFamilies, embeddingFamilies } from "../upstreams/bedrock/model-families.ts";
import { flag, optionalFlag, requiredWholeNumber, text } from "./values.ts";

/** What an operator says of one model at one target of kind `bedrock`. */

const familyMeta = {
  title: "family",
  description:
    "Family of the model. Read from the identifier unless that is an ARN or names an unknown model.",
};

const capabilitiesSchema = z
  .strictObject({
    system: optionalFlag(
      "Takes instructions of their own; else they stand before the first words.",
    ),
    tools: optionalFlag("Takes tools."),
    streaming_tools: optionalFlag(
      "Takes tools in streamed answers; else the whole answer is replayed as a stream.",
    ),
    tool_choice: optionalFlag("Takes that some tool must be called."),
    named_tool_choice: optionalFlag("Takes the name of the tool that must be called."),
    tool_results_with_text: optionalFlag("Takes tool results and words of the user in one turn."),
    single_tool_calls: optionalFlag("Takes `parallel_tool_calls: false`."),
    temperature: optionalFlag("Takes `temperature`."),
    top_p: optionalFlag("Takes `top_p`."),
    top_p_with_temperature: optionalFlag("Takes `top_p` and `temperature` together."),
    top_k: optionalFlag("Takes `top_k`."),
    stop: optionalFlag("Takes `stop`."),
    prefill: optionalFlag("Takes a conversation that ends with the assistant's words."),
    images: optionalFlag("Takes images."),
    tool_result_images: optionalFlag("Takes images in results of tools."),
    max_images: requiredWholeNumber({
      about: "Most images of one request.",
      min: 1,
      max: 100_000,
    }).optional(),
    max_image_bytes: requiredWholeNumber({
      about: "Most bytes of one image, decoded.",
      min: 1,
      max: 1_000_000_000,
    }).optional(),
    documents: optionalFlag("Takes documents."),
    prompt_caching: optionalFlag("Takes points up to which a prompt may be cached."),
    json_schema: optionalFlag("Takes JSON schemas of answers."),
    reasoning: z
      .enum(["none", "thinking-budget", "adaptive", "effort-field"])
      .optional()
      .describe("How `reasoning_effort` is asked for."),
    max_output_tokens: requiredWholeNumber({
      about: "Most tokens of one answer that the model takes.",
      min: 1,
      max: 100_000_000,
    }).optional(),
    nine_character_tool_ids: optionalFlag("Wants ids of tool calls of nine letters and digits."),
    count_tokens: optionalFlag("Counts the tokens of a request without running it."),
  })
  .prefault({})
  .describe("What the model can do, where its family says otherwise.");

const guardrailSchema = z
  .strictObject({
    identifier: text("Identifier or ARN of the guardrail."),
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

export const bedrockChatTargetSchema = z
  .strictObject({
    family: z.enum(chatFamilies).optional().meta(familyMeta),
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

export const bedrockEmbeddingTargetSchema = z
  .strictObject({
    family: z.enum(embeddingFamilies).optional().meta(familyMeta),
    input_type: z
      .enum(["search_document", "search_query", "classification", "clustering"])
      .prefault("search_document")
      .describe("What Cohere's embeddings are for. Documents and queries need an alias each."),
    truncate: z
      .enum(["none", "start", "end"])
      .prefault("none")
      .describe("Where Cohere's models cut inputs that are too long; `none` refuses them."),
  })
  .optional();
