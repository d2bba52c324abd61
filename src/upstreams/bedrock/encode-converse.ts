import type { ChatRequest } from "../../domain/chat.ts";
import { numberOf, type JsonObject } from "../shared/json-fields.ts";
import type { AnswerContext } from "./answer-context.ts";
import { answerCheckOf } from "./answer-format/answer-check.ts";
import type { BedrockModel } from "./bedrock-model.ts";
import { checkUnsupported } from "./check-unsupported.ts";
import type { ConverseBody, GuardrailConfig } from "./converse-body.ts";
import { encodeConversation, type Conversation } from "./encode-conversation.ts";
import { encodeInference, maxTokensOf } from "./encode-inference.ts";
import { encodeTools, type EncodedTools } from "./encode-tools.ts";
import { mergeFields } from "./merge-fields.ts";
import { planAnswerFormat, type AnswerFormat } from "./answer-format/plan-answer-format.ts";
import { planReasoning, type ReasoningPlan } from "./plan-reasoning.ts";
import type { BedrockModelSettings, Guardrail } from "./settings.ts";
import { ToolNames } from "./tool-names.ts";
import { mayCallTools } from "./tool-offers.ts";

export interface EncodedConverse {
  readonly body: string;
  readonly context: AnswerContext;
}

/**
 * The body of `POST /model/{id}/converse`, or of `/converse-stream`, and what reading the answer
 * needs. Throws `UpstreamFailure` `unsupported` or `invalid-request` that name the caller's field.
 * `n` is not read: each choice is a request of its own.
 */
export function encodeConverse(
  request: ChatRequest,
  model: BedrockModel,
  { isStreamed }: { readonly isStreamed: boolean },
): EncodedConverse {
  checkUnsupported(request, model);
  const parts = encodeParts(request, model);
  const { format, tools, names, conversation } = parts;
  const maxTokens = maxTokensOf(request, model);
  const reasoning = planReasoning(request, model, {
    isForced: tools.isForced,
    maxTokens,
    lastTurn: conversation.turns.at(-1),
  });
  const { isThinking } = reasoning;
  const fields = additionalFields(request, model, { tools, reasoning });
  const body: ConverseBody = {
    ...contentOf(parts),
    inferenceConfig: encodeInference(request, model, { maxTokens, isThinking }),
    ...(Object.keys(fields).length > 0 && { additionalModelRequestFields: fields }),
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
      check: model.settings.validateAnswers ? answerCheckOf(request) : undefined,
    },
  };
}

/** What the model reads of a request. Throws as `encodeConverse` does. */
export function encodeContent(request: ChatRequest, model: BedrockModel): ConverseContent {
  return contentOf(encodeParts(request, model));
}

/** Whether a streamed answer must be asked for whole: some models stream no tool calls. */
export function answersAsWhole(request: ChatRequest, model: BedrockModel): boolean {
  if (model.capabilities.streamingTools || !model.capabilities.tools) return false;
  return mayCallTools(request) || planAnswerFormat(request, model).kind === "tool";
}

interface Parts {
  readonly format: AnswerFormat;
  readonly names: ToolNames;
  readonly tools: EncodedTools;
  readonly conversation: Conversation;
}

function encodeParts(request: ChatRequest, model: BedrockModel): Parts {
  const format = planAnswerFormat(request, model);
  const names = new ToolNames();
  // Before the history, so that it is not the offered names that give way to alike ones.
  const tools = encodeTools(request, model, { names, format });
  const conversation = encodeConversation(request.messages, {
    model,
    names,
    offersTools: tools.hasOffers,
    instruction: format.kind === "instruction" ? format.text : undefined,
  });
  return { format, names, tools, conversation };
}

type ConverseContent = Pick<ConverseBody, "messages" | "system" | "toolConfig">;

function contentOf({ conversation: { system, turns }, tools: { config } }: Parts): ConverseContent {
  return {
    messages: turns,
    ...(system.length > 0 && { system }),
    ...(config !== undefined && { toolConfig: config }),
  };
}

/** The operator's fields stand above the caller's: who pays for the model knows what it takes. */
function additionalFields(
  request: ChatRequest,
  { capabilities, settings }: BedrockModel,
  { tools, reasoning }: { readonly tools: EncodedTools; readonly reasoning: ReasoningPlan },
): JsonObject {
  const topK = numberOf(request["top_k"]);
  const sendsTopK = topK !== undefined && capabilities.topK && !reasoning.isThinking;
  // What the operator says of thinking is part of the plan already, where it can be had.
  const { thinking: _planned, ...configured } = settings.additionalFields;
  const computed = { ...(sendsTopK && { top_k: topK }), ...reasoning.fields, ...tools.fields };
  return mergeFields(computed, configured);
}

type OperatorFields = Pick<
  ConverseBody,
  "guardrailConfig" | "requestMetadata" | "performanceConfig" | "serviceTier"
>;

/** Request metadata is the operator's alone: it ends up in the operator's logs. */
function operatorFields(
  request: ChatRequest,
  settings: BedrockModel["settings"],
  isStreamed: boolean,
): OperatorFields {
  const { guardrail, requestMetadata, latency } = settings;
  const tier = settings.serviceTier ?? tierOf(request["service_tier"]);
  return {
    ...(guardrail !== undefined && { guardrailConfig: encodeGuardrail(guardrail, isStreamed) }),
    ...(Object.keys(requestMetadata).length > 0 && { requestMetadata }),
    ...(latency !== undefined && { performanceConfig: { latency } }),
    ...(tier !== undefined && { serviceTier: { type: tier } }),
  };
}

/** `auto` and `default` are what happens anyway; `scale` is bought at OpenAI and nowhere else. */
function tierOf(wanted: unknown): BedrockModelSettings["serviceTier"] {
  // OpenAI serves `fast` as `priority`.
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
