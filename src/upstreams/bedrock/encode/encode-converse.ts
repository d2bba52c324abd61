import type { AdjustedFields } from "../../../domain/chat/answer.ts";
import { type Conversation, fieldOf } from "../../../domain/chat/conversation.ts";
import type { JsonObject } from "../../../domain/json-fields.ts";
import { Adjustments, checkUnsupported, mergeFields } from "../../shared/adjustments.ts";
import type { AnswerContext } from "../../shared/answers/answer-context.ts";
import { answerCheckOf } from "../answer-format/answer-check.ts";
import { addDocumentWords, ConverseWriter } from "./block-writer.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { addCachePoints, limitCachePoints, listsOf } from "./cache-points.ts";
import type {
  ContentBlock,
  ConverseBody,
  GuardrailConfig,
  TextFormat,
  ToolConfig,
} from "./converse-body.ts";
import { type EncodedTurns, encodeTurns } from "../../shared/turns/turn-encoder.ts";
import { lacksThoughts, withoutThoughts } from "../../shared/turns/turns.ts";
import { encodeInference, maxTokensOf, stopsOf } from "../../shared/inference.ts";
import { encodeTools } from "../tools/encode-tools.ts";
import { planTools, type ToolPlan } from "../../shared/tools/plan-tools.ts";
import {
  type FormatPlan,
  type FieldFormat,
  planAnswerFormat,
} from "../../shared/answer-format/plan-answer-format.ts";
import type { BedrockModelSettings } from "../settings.ts";
import type { Guardrail } from "../config/target-sections.ts";
import { reportThinking } from "../../shared/claude/thinking.ts";
import {
  countsThoughts,
  planReasoning,
  type ReasoningPlan,
  thoughtCountPaths,
} from "../thinking/plan-reasoning.ts";
import { asksForStop, stopPaths } from "./stop-sequence.ts";
import { ToolNames } from "../../shared/tools/tool-names.ts";
import { mayCallTools, usesFunctions } from "../../shared/tools/tool-offers.ts";

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
  const { format, plan, names, conversation } = parts;
  const maxTokens = maxTokensOf(request, model, adjustments);
  const reasoning = planReasoning(request, model, {
    isForced: plan.isForced,
    maxTokens,
    turns: conversation.turns,
    lacksThoughts: lacksThoughts(conversation.turns, parts.writer),
  });
  const { isThinking, isUncapped } = reasoning;
  reportThinking(request, reasoning, adjustments);
  const cap = isUncapped === true ? undefined : maxTokens;
  const stops = stopsOf(request, model);
  const paths = [
    ...(countsThoughts(model.capabilities, isThinking) ? thoughtCountPaths : []),
    ...(asksForStop(request, model, stops.sent) ? stopPaths : []),
  ];
  const fields = additionalFields(request, model, {
    tools: parts.fields,
    reasoning,
    adjustments,
  });
  const body: ConverseBody = {
    ...contentOf(parts, { keepsThoughts: isThinking }),
    inferenceConfig: encodeInference(request, model, { maxTokens: cap, isThinking, adjustments }),
    ...(Object.keys(fields).length > 0 && { additionalModelRequestFields: fields }),
    ...(paths.length > 0 && { additionalModelResponseFieldPaths: paths }),
    ...(format.kind === "field" && { outputConfig: { textFormat: textFormatOf(format) } }),
    ...operatorFields(request, model.settings, isStreamed),
  };
  return {
    body: JSON.stringify(body),
    context: {
      toolNames: names.renamed,
      textTools: plan.textTools,
      answerTool: plan.answerTool,
      usesFunctions: usesFunctions(request),
      stopSequences: stops.kept,
      sentStop: stops.sent.length === 1 ? stops.sent[0] : undefined,
      askedTier: serviceTierOf(request, model.settings),
      check: model.settings.validateAnswers ? answerCheckOf(request) : undefined,
    },
    adjusted: adjustments.fields,
  };
}

function textFormatOf({ name, description, schema }: FieldFormat): TextFormat {
  const jsonSchema = {
    schema: JSON.stringify(schema),
    name,
    ...(description !== undefined && { description }),
  };
  return { type: "json_schema", structure: { jsonSchema } };
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
  readonly format: FormatPlan;
  readonly names: ToolNames;
  readonly plan: ToolPlan;
  readonly config: ToolConfig | undefined;
  /** The tools' part of `additionalModelRequestFields`. */
  readonly fields: JsonObject;
  readonly conversation: EncodedTurns<ContentBlock>;
  readonly writer: ConverseWriter;
}

function encodeParts(request: Conversation, model: BedrockModel, adjustments: Adjustments): Parts {
  const format = planAnswerFormat(request, model, adjustments);
  const names = new ToolNames();
  // Before the history, so that a clash changes the names in the history, not the offered ones.
  const plan = planTools(request, model.capabilities, { names, format, adjustments });
  const tools = encodeTools(plan, model, names);
  const writer = new ConverseWriter(request, model);
  const conversation = encodeTurns(request, {
    writer,
    rules: model.capabilities,
    isRepaired: model.settings.conversation === "repair",
    names,
    offersTools: plan.hasOffers,
    instruction: format.kind === "instruction" ? format.text : undefined,
    adjustments,
  });
  addDocumentWords(conversation.turns);
  const prompt = { tools: [...(tools.config?.tools ?? [])], ...conversation };
  if (model.capabilities.promptCaching && model.settings.promptCache === "auto") {
    addCachePoints(prompt, model.capabilities);
  }
  limitCachePoints(listsOf(prompt));
  const config = tools.config && { ...tools.config, tools: prompt.tools };
  return { format, names, plan, config, fields: tools.fields, conversation, writer };
}

type ConverseContent = Pick<ConverseBody, "messages" | "system" | "toolConfig">;

function contentOf(
  { conversation: { system, turns }, config, writer }: Parts,
  { keepsThoughts }: { readonly keepsThoughts: boolean },
): ConverseContent {
  return {
    messages: keepsThoughts ? turns : withoutThoughts(turns, writer),
    ...(system.length > 0 && { system }),
    ...(config !== undefined && { toolConfig: config }),
  };
}

interface Plans {
  readonly tools: JsonObject;
  readonly reasoning: ReasoningPlan;
  readonly adjustments: Adjustments;
}

/** The operator's fields override the caller's, since the operator pays for the model. */
function additionalFields(
  request: Conversation,
  { capabilities, family, settings }: BedrockModel,
  { tools, reasoning, adjustments }: Plans,
): JsonObject {
  const topK = capabilities.topK ? request.options.topK : undefined;
  if (topK !== undefined && reasoning.isThinking) {
    adjustments.sendAs(fieldOf(request, "topK"), "dropped");
  }
  // The operator's settings of thinking are already in the plan, if they apply.
  const { thinking: _planned, reasoningConfig, ...others } = settings.additionalFields;
  const isPlanned = reasoningConfig === undefined || capabilities.reasoning === "nova-effort";
  const configured = isPlanned ? others : { ...others, reasoningConfig };
  const sendsTopK = topK !== undefined && !reasoning.isThinking;
  const sampling = sendsTopK ? topKFields(topK, family) : {};
  const computed = { ...sampling, ...reasoning.fields, ...tools };
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
  { options: { serviceTier: wanted } }: Conversation,
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
