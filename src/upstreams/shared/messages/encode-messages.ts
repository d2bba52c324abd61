import type { AdjustedFields } from "../../../domain/chat/answer.ts";
import { type Conversation, fieldOf } from "../../../domain/chat/conversation.ts";
import type { JsonObject } from "../../../domain/json-fields.ts";
import { type MessagesBlock, MessagesWriter } from "../../../wires/messages/write-blocks.ts";
import {
  type MessagesTool,
  writeMessagesContent,
  writeMessagesRequest,
} from "../../../wires/messages/write-request.ts";
import { Adjustments, checkUnsupported, isBlank } from "../adjustments.ts";
import type { AnswerContext } from "../answers/answer-context.ts";
import {
  type FormatPlan,
  type FormatModel,
  planAnswerFormat,
} from "../answer-format/plan-answer-format.ts";
import { providerSchema } from "../answer-format/provider-schema.ts";
import {
  planThinking,
  reportThinking,
  type ThinkingFacts,
  type ThinkingPlan,
  thinkingWish,
} from "../claude/thinking.ts";
import { encodeInference, type InferenceModel, maxTokensOf, stopsOf } from "../inference.ts";
import { claudeChoice, planTools, type ToolPlan, type ToolRules } from "../tools/plan-tools.ts";
import { ToolNames } from "../tools/tool-names.ts";
import { type Offer, usesFunctions } from "../tools/tool-offers.ts";
import { encodeTurns, type TurnRules } from "../turns/turn-encoder.ts";
import { lacksThoughts, withoutThoughts } from "../turns/turns.ts";

/** A model of Claude behind a Messages API. */
export interface MessagesModel extends InferenceModel, FormatModel {
  /** The upstream's name. */
  readonly identifier: string;
  readonly capabilities: MessagesCapabilities;
  readonly settings: InferenceModel["settings"] &
    FormatModel["settings"] & {
      readonly dropUnsupported: boolean;
      readonly conversation: "repair" | "strict";
    };
}

export type MessagesCapabilities = InferenceModel["capabilities"] &
  FormatModel["capabilities"] &
  TurnRules &
  ToolRules &
  ThinkingFacts & {
    /** How the model is made to think; others than these two are not. */
    readonly reasoning: string;
    readonly topK: boolean;
    readonly images: boolean;
    readonly documents: boolean;
  };

/** What one server of the API takes. */
export interface MessagesApi {
  /** Fields and types of blocks that callers of Messages may send beyond those of the form. */
  readonly forwarded: ReadonlySet<string>;
  /** Tools with `strict`. */
  readonly strictTools: boolean;
  /** Names of end users, in `metadata`. */
  readonly endUsers: boolean;
}

export interface EncodedMessages {
  readonly body: string;
  readonly context: AnswerContext;
  readonly adjusted: AdjustedFields;
}

/**
 * The body of `POST /v1/messages`, and the context for reading its answer. Throws `UpstreamFailure`
 * `unsupported` or `invalid-request` that name the caller's field. `n` is ignored: each choice has
 * its own request.
 */
export function encodeMessages(
  request: Conversation,
  model: MessagesModel,
  api: MessagesApi,
): EncodedMessages {
  const adjustments = new Adjustments(model.settings);
  checkUnsupported(request, adjustments);
  const parts = encodeParts(request, model, { api, adjustments });
  const { maxTokens, names, plan, thinking } = parts;
  const { isThinking } = thinking;
  reportThinking(request, thinking, adjustments);
  const stops = stopsOf(request, model);
  const inference = encodeInference(request, model, { maxTokens, isThinking, adjustments });
  const topK = model.capabilities.topK ? request.options.topK : undefined;
  if (topK !== undefined && isThinking) adjustments.sendAs(fieldOf(request, "topK"), "dropped");
  const body = writeMessagesRequest(request, parts.content, {
    ...inference,
    maxTokens,
    topK: isThinking ? undefined : topK,
    user: api.endUsers ? request.options.user : undefined,
    forwarded: api.forwarded,
  });
  return {
    body: JSON.stringify(body),
    context: {
      toolNames: names.renamed,
      textTools: plan.textTools,
      answerTool: plan.answerTool,
      usesFunctions: usesFunctions(request),
      stopSequences: stops.kept,
      sentStop: undefined,
      check: undefined,
    },
    adjusted: adjustments.fields,
  };
}

/** The body of `POST /v1/messages/count_tokens`. Throws as `encodeMessages` does. */
export function encodeMessagesCount(
  request: Conversation,
  model: MessagesModel,
  api: MessagesApi,
): string {
  const adjustments = new Adjustments(model.settings);
  return JSON.stringify(encodeParts(request, model, { api, adjustments }).content);
}

interface Parts {
  readonly content: JsonObject;
  readonly names: ToolNames;
  readonly plan: ToolPlan;
  readonly maxTokens: number;
  readonly thinking: ThinkingPlan;
}

interface Writing {
  readonly api: MessagesApi;
  readonly adjustments: Adjustments;
}

function encodeParts(
  request: Conversation,
  model: MessagesModel,
  { api, adjustments }: Writing,
): Parts {
  const { forwarded } = api;
  const { capabilities, settings } = model;
  const format = planAnswerFormat(request, model, adjustments);
  const names = new ToolNames();
  const plan = planTools(request, capabilities, { names, format, adjustments });
  // Forbidden tools stay: without them, the history's calls would have to become text.
  const offers = [...plan.forbidden, ...plan.list];
  const tools = offers.map((offer) =>
    toolOf(offer, names, capabilities.jsonSchema && api.strictTools),
  );
  const writer = new MessagesWriter({
    isOwn: request.wire === "messages",
    forwarded,
    images: capabilities.images,
    documents: capabilities.documents,
  });
  const { system, turns } = encodeTurns<MessagesBlock>(request, {
    writer,
    rules: capabilities,
    isRepaired: settings.conversation === "repair",
    names,
    offersTools: tools.length > 0,
    instruction: format.kind === "instruction" ? format.text : undefined,
    adjustments,
  });
  const maxTokens = maxTokensOf(request, model, adjustments);
  const thinking = planThinking(thinkingWish(request), capabilities, {
    maxTokens,
    mayThink: !plan.isForced && turns.at(-1)?.role === "user",
    lacksThoughts: lacksThoughts(turns, writer),
  });
  const content = writeMessagesContent(request, {
    model: model.identifier,
    system,
    messages: thinking.isThinking ? turns : withoutThoughts(turns, writer),
    tools,
    toolChoice: tools.length === 0 ? undefined : choiceOf(plan, names),
    thinking: thinking.fields,
    schema: schemaOf(format),
    forwarded,
  });
  return { content, names, plan, maxTokens, thinking };
}

function toolOf(
  { name, description, schema, isStrict, cacheMark, extra }: Offer,
  names: ToolNames,
  takesStrict: boolean,
): MessagesTool {
  // A strict tool that cannot be enforced is offered as an ordinary one.
  const held = isStrict && takesStrict ? providerSchema(schema) : undefined;
  return {
    name: names.sentNameOf(name),
    description: description === undefined || isBlank(description) ? undefined : description,
    schema: held ?? schema,
    isStrict: held !== undefined,
    cacheMark,
    extra,
  };
}

function choiceOf(plan: ToolPlan, names: ToolNames): JsonObject | undefined {
  // Nothing may be called but what the list has.
  if (plan.list.length === 0) return { type: "none" };
  return plan.choice.type === "auto" && !plan.isSingle ? undefined : claudeChoice(plan, names);
}

function schemaOf(format: FormatPlan): JsonObject | undefined {
  return format.kind === "field" ? format.schema : undefined;
}
