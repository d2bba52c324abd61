import { type Conversation, fieldOf } from "../../../domain/chat/conversation.ts";
import type { JsonObject } from "../../../domain/json-fields.ts";
import { type Adjustments, isBlank } from "../../shared/adjustments.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { cachePointFor } from "../encode/cache-points.ts";
import type { ToolConfig, ToolEntry, ToolSpec, WireToolChoice } from "../encode/converse-body.ts";
import type { AnswerFormat } from "../answer-format/plan-answer-format.ts";
import { providerSchema } from "../answer-format/provider-schema.ts";
import type { ToolNames } from "../../shared/tools/tool-names.ts";
import {
  readOffers,
  type Choice,
  type Offer,
  type Offers,
} from "../../shared/tools/tool-offers.ts";

export interface EncodedTools {
  /** Undefined when the model must not be able to call any. */
  readonly config: ToolConfig | undefined;
  /** For `additionalModelRequestFields`. */
  readonly fields: JsonObject;
  /** The tools whose input is text, by sent name. */
  readonly textTools: ReadonlySet<string>;
  /** Whether the caller's own are among them. */
  readonly hasOffers: boolean;
  /** By sent name. */
  readonly answerTool: string | undefined;
  /** Whether the model must call one. */
  readonly isForced: boolean;
}

export interface ToolContext {
  readonly names: ToolNames;
  readonly format: AnswerFormat;
  readonly adjustments: Adjustments;
}

/** The tools of a request, including the one whose input is the answer. */
export function encodeTools(
  request: Conversation,
  model: BedrockModel,
  { names, format, adjustments }: ToolContext,
): EncodedTools {
  const offers = supported(readOffers(request), model, adjustments);
  const own = offers.choice.type === "none" ? [] : offers.list;
  const isSingle = own.length > 0 && wantsSingleCalls(request, offers, { model, adjustments });
  const writing = { model, names, isSingle };
  if (format.kind === "tool") return encodeAnswerTool(format.offer, own, writing);
  if (own.length === 0) return noTools;
  return {
    ...configured(own, offers.choice, writing),
    hasOffers: true,
    answerTool: undefined,
  };
}

const noTools: EncodedTools = {
  config: undefined,
  fields: {},
  textTools: new Set(),
  hasOffers: false,
  answerTool: undefined,
  isForced: false,
};

interface Writing {
  readonly model: BedrockModel;
  readonly names: ToolNames;
  /** Whether the model may make one call at most. */
  readonly isSingle: boolean;
}

/**
 * With the caller's tools, any tool may be called, but one must be: text would not be the answer.
 */
function encodeAnswerTool(offer: Offer, own: readonly Offer[], writing: Writing): EncodedTools {
  const { model, names } = writing;
  const isAlone = own.length === 0 && model.capabilities.namedToolChoice;
  const choice: Choice = isAlone ? { type: "named", name: offer.name } : { type: "any" };
  return {
    ...configured([...own, offer], choice, writing),
    hasOffers: own.length > 0,
    answerTool: names.sentNameOf(offer.name),
  };
}

function configured(
  list: readonly Offer[],
  choice: Choice,
  { model, names, isSingle }: Writing,
): Omit<EncodedTools, "answerTool" | "hasOffers"> {
  return {
    config: {
      tools: list.flatMap((offer) => entriesOf(offer, model, names)),
      ...(!isSingle && choiceOf(choice, names)),
    },
    fields: isSingle ? { tool_choice: singleChoiceOf(choice, names) } : {},
    textTools: new Set(
      list.filter(({ kind }) => kind === "custom").map(({ name }) => names.sentNameOf(name)),
    ),
    isForced: choice.type !== "auto",
  };
}

/** The offers that this model supports, or a refusal. */
function supported(
  offers: Offers,
  { capabilities }: BedrockModel,
  adjustments: Adjustments,
): Offers {
  const { list, choice, field, choiceField } = offers;
  if (list.length === 0 || choice.type === "none") return offers;
  if (!capabilities.tools) {
    adjustments.dropOrRefuse(field, `This model cannot call tools. Remove ${field}.`);
    return { ...offers, list: [] };
  }
  if (choice.type === "auto") return offers;
  if (!capabilities.toolChoice) {
    const message = `This model does not support forced tool calls. Omit ${choiceField} or send 'auto'.`;
    adjustments.dropOrRefuse(choiceField, message, "auto");
    return { ...offers, choice: { type: "auto" } };
  }
  if (choice.type !== "named" || capabilities.namedToolChoice) return offers;
  return {
    ...offers,
    list: list.filter(({ name }) => name === choice.name),
    choice: { type: "any" },
  };
}

/** A caller that relies on single calls may fail if it gets two, so this is not just a hint. */
function wantsSingleCalls(
  request: Conversation,
  { isOld }: Offers,
  { model, adjustments }: { readonly model: BedrockModel; readonly adjustments: Adjustments },
): boolean {
  // An answer to the deprecated functions has room for one call.
  if (isOld) return model.capabilities.singleToolCalls;
  if (request.options.parallelToolCalls !== false) return false;
  if (model.capabilities.singleToolCalls) return true;
  const field = fieldOf(request, "parallelToolCalls");
  adjustments.dropOrRefuse(
    field,
    `This model cannot be limited to one tool call at a time. Remove ${field}.`,
  );
  return false;
}

/** Some models cache prompts, but do not accept cache points among the tools. */
function entriesOf(offer: Offer, model: BedrockModel, names: ToolNames): readonly ToolEntry[] {
  const spec = specOf(offer, model, names);
  const { capabilities } = model;
  const point = capabilities.promptCacheTools && cachePointFor(offer.cacheMark, capabilities);
  return point ? [spec, point] : [spec];
}

function specOf(offer: Offer, { capabilities }: BedrockModel, names: ToolNames): ToolSpec {
  const { name, description = "", schema, isStrict } = offer;
  // A strict tool that cannot be enforced is offered as an ordinary one.
  const held = isStrict && capabilities.jsonSchema ? providerSchema(schema) : undefined;
  return {
    toolSpec: {
      name: names.sentNameOf(name),
      ...(!isBlank(description) && { description }),
      inputSchema: { json: held ?? schema },
      ...(held !== undefined && { strict: true }),
    },
  };
}

function choiceOf(choice: Choice, names: ToolNames): { toolChoice?: WireToolChoice } {
  switch (choice.type) {
    case "any":
      return { toolChoice: { any: {} } };
    case "named":
      return { toolChoice: { tool: { name: names.sentNameOf(choice.name) } } };
    case "auto":
    case "none":
      return {};
  }
}

/**
 * The model's own format of a tool choice, the only one that can request single calls. The provider
 * refuses it together with its own format, so the whole choice is written here.
 */
function singleChoiceOf(choice: Choice, names: ToolNames): JsonObject {
  return choice.type === "named"
    ? { type: "tool", name: names.sentNameOf(choice.name), disable_parallel_tool_use: true }
    : { type: choice.type, disable_parallel_tool_use: true };
}
