import type { AdjustedFields } from "../../../domain/chat/answer.ts";
import type { Conversation } from "../../../domain/chat/conversation.ts";
import { type JsonObject, numberOf } from "../../../domain/json-fields.ts";
import { Adjustments, checkUnsupported, mergeFields } from "./adjustments.ts";
import { type AnswerContext, answerCheckOf } from "./answer-context.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { addCachePoints, limitCachePoints, listsOf } from "./cache-points.ts";
import type { ConverseBody, GuardrailConfig } from "./converse-body.ts";
import { type Conversation, encodeConversation } from "./encode-conversation.ts";
import { encodeInference, maxTokensOf, stopsOf } from "./encode-inference.ts";
import { type EncodedTools, encodeTools } from "../tools/encode-tools.ts";
import { type AnswerFormat, planAnswerFormat } from "../answer-format/plan-answer-format.ts";
import type { BedrockModelSettings } from "../settings.ts";
import type { Guardrail } from "../config/target-sections.ts";
import {
  countsThoughts,
  planReasoning,
  type ReasoningPlan,
  thoughtCountPaths,
  withoutThoughts,
} from "../thinking/plan-reasoning.ts";
import { ToolNames } from "../tools/tool-names.ts";
import { mayCallTools } from "../tools/tool-offers.ts";

interface EncodedConverse {
  readonly body: string;
  readonly context: AnswerContext;
  readonly adjusted: AdjustedFields;
}

/**
 * The body of `POST /model/{id}/converse`, or of `/converse-stream`, and the context for reading
 * the answer. Throws `UpstreamFailure` `unsupported` or `invalid-request` that name the caller's
 * field. `n` is ignored: each choice has its own request.
 */
export function encodeConverse(
  request: Conversation,
  model: BedrockModel,
  { isStreamed }: { readonly isStreamed: boolean },
): EncodedConverse {
  const adjustments = new Adjustments(model.settings);
  checkUnsupported(request, adjustments);
  const parts = encodeParts(request, model, adjustments);
  const { format, tools, names, conversation } = parts;
  const maxTokens = maxTokensOf(request, model, adjustments);
  const reasoning = planReasoning(request, model, {
    isForced: tools.isForced,
    maxTokens,
    turns: conversation.turns,
  });
  const { isThinking, isUncapped } = reasoning;
  reportEffort(request, reasoning, adjustments);
  const cap = isUncapped === true ? undefined : maxTokens;
  const fields = additionalFields(request, model, { tools, reasoning, adjustments });
  const body: ConverseBody = {
    ...contentOf(parts, { keepsThoughts: isThinking }),
    inferenceConfig: encodeInference(request, model, { maxTokens: cap, isThinking, adjustments }),
    ...(Object.keys(fields).length > 0 && { additionalModelRequestFields: fields }),
    ...(countsThoughts(model.capabilities, isThinking) && {
      additionalModelResponseFieldPaths: thoughtCountPaths,
    }),
    ...(format.kind === "field" && { outputConfig: { textFormat: format.textFormat } }),
    ...operatorFields(request, model.settings, isStreamed),
  };
  return {
    body: JSON.stringify(body),
    context: {
      toolNames: names.renamed,
      textTools: tools.textTools,
      answerTool: tools.answerTool,
      usesFunctions: (request.functions ?? []).length > 0,
      thoughtSeal: model.thoughtSeal,
      stopSequences: stopsOf(request, model).kept,
      check: model.settings.validateAnswers ? answerCheckOf(request) : undefined,
    },
    adjusted: adjustments.fields,
  };
}

function reportEffort(
  { reasoning_effort: asked }: Conversation,
  { effort }: ReasoningPlan,
  adjustments: Adjustments,
): void {
  const isOther = typeof asked === "string" && effort !== undefined && asked !== effort;
  if (isOther) adjustments.sendAs("reasoning_effort", effort);
}

/**
 * The content of a request that the model reads, without thoughts. Throws as `encodeConverse` does.
 */
export function encodeContent(request: Conversation, model: BedrockModel): ConverseContent {
  const parts = encodeParts(request, model, new Adjustments(model.settings));
  return contentOf(parts, { keepsThoughts: false });
}

/** Whether a streamed answer must be requested whole: some models stream no tool calls. */
export function answersAsWhole(request: Conversation, model: BedrockModel): boolean {
  if (model.capabilities.streamingTools || !model.capabilities.tools) return false;
  if (mayCallTools(request)) return true;
  return planAnswerFormat(request, model, new Adjustments(model.settings)).kind === "tool";
}

interface Parts {
  readonly format: AnswerFormat;
  readonly names: ToolNames;
  readonly tools: EncodedTools;
  readonly conversation: Conversation;
}

function encodeParts(request: Conversation, model: BedrockModel, adjustments: Adjustments): Parts {
  const format = planAnswerFormat(request, model, adjustments);
  const names = new ToolNames();
  // Before the history, so that a clash changes the names in the history, not the offered ones.
  const tools = encodeTools(request, model, { names, format, adjustments });
  const conversation = encodeConversation(request.messages, {
    model,
    names,
    offersTools: tools.hasOffers,
    instruction: format.kind === "instruction" ? format.text : undefined,
    adjustments,
  });
  const prompt = { tools: [...(tools.config?.tools ?? [])], ...conversation };
  if (model.capabilities.promptCaching && model.settings.promptCache === "auto") {
    addCachePoints(prompt, model.capabilities);
  }
  limitCachePoints(listsOf(prompt));
  const config = tools.config && { ...tools.config, tools: prompt.tools };
  return { format, names, tools: { ...tools, config }, conversation };
}

type ConverseContent = Pick<ConverseBody, "messages" | "system" | "toolConfig">;

function contentOf(
  { conversation: { system, turns }, tools: { config } }: Parts,
  { keepsThoughts }: { readonly keepsThoughts: boolean },
): ConverseContent {
  return {
    messages: keepsThoughts ? turns : withoutThoughts(turns),
    ...(system.length > 0 && { system }),
    ...(config !== undefined && { toolConfig: config }),
  };
}

interface Plans {
  readonly tools: EncodedTools;
  readonly reasoning: ReasoningPlan;
  readonly adjustments: Adjustments;
}

/** The operator's fields override the caller's, since the operator pays for the model. */
function additionalFields(
  request: Conversation,
  { capabilities, family, settings }: BedrockModel,
  { tools, reasoning, adjustments }: Plans,
): JsonObject {
  const topK = capabilities.topK ? numberOf(request["top_k"]) : undefined;
  if (topK !== undefined && reasoning.isThinking) adjustments.sendAs("top_k", "dropped");
  // The operator's settings of thinking are already in the plan, if they apply.
  const { thinking: _planned, reasoningConfig, ...others } = settings.additionalFields;
  const isPlanned = reasoningConfig === undefined || capabilities.reasoning === "nova-effort";
  const configured = isPlanned ? others : { ...others, reasoningConfig };
  const sendsTopK = topK !== undefined && !reasoning.isThinking;
  const sampling = sendsTopK ? topKFields(topK, family) : {};
  const computed = { ...sampling, ...reasoning.fields, ...tools.fields };
  return mergeFields(computed, configured);
}

type OperatorFields = Pick<
  ConverseBody,
  "guardrailConfig" | "requestMetadata" | "performanceConfig" | "serviceTier"
>;

/** Only the operator can set request metadata, because it is written to the operator's logs. */
function operatorFields(
  request: Conversation,
  settings: BedrockModel["settings"],
  isStreamed: boolean,
): OperatorFields {
  const { guardrail, requestMetadata, latency } = settings;
  const tier = serviceTierOf(request, settings);
  return {
    ...(guardrail !== undefined && { guardrailConfig: encodeGuardrail(guardrail, isStreamed) }),
    ...(Object.keys(requestMetadata).length > 0 && { requestMetadata }),
    ...(latency !== undefined && { performanceConfig: { latency } }),
    ...(tier !== undefined && { serviceTier: { type: tier } }),
  };
}

/**
 * The operator's tier, or else the caller's. `auto` and `default` need no field, and `scale` exists
 * only at OpenAI.
 */
function serviceTierOf(
  { service_tier: wanted }: Conversation,
  { serviceTier }: BedrockModel["settings"],
): BedrockModelSettings["serviceTier"] {
  if (serviceTier !== undefined) return serviceTier;
  // OpenAI treats `fast` as `priority`.
  if (wanted === "priority" || wanted === "fast") return "priority";
  return wanted === "flex" ? "flex" : undefined;
}

function encodeGuardrail(guardrail: Guardrail, isStreamed: boolean): GuardrailConfig {
  return {
    guardrailIdentifier: guardrail.identifier,
    guardrailVersion: guardrail.version,
    trace: guardrail.trace,
    ...(isStreamed && { streamProcessingMode: guardrail.streamProcessing }),
  };
}

/**
 * `top_k` in `additionalModelRequestFields`: most models have a field of that name. Nova has it
 * inside its own object, and refuses the other. Source: Amazon Nova user guides of both
 * generations, "Request and response schema".
 */
function topKFields(topK: number, family: string): JsonObject {
  return family.startsWith("nova") ? { inferenceConfig: { topK } } : { top_k: topK };
}
