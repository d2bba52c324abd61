import type { ChatRequest } from "../../domain/chat.ts";
import type { JsonObject } from "../shared/json-fields.ts";
import type { Adjustments } from "./adjustments.ts";
import type { BedrockModel } from "./bedrock-model.ts";
import { isBlank } from "./blank-text.ts";
import type { ToolConfig, ToolSpec, WireToolChoice } from "./converse-body.ts";
import type { AnswerFormat } from "./plan-answer-format.ts";
import type { ToolNames } from "./tool-names.ts";
import { readOffers, type Choice, type Offer, type Offers } from "./tool-offers.ts";

export interface EncodedTools {
  /** Undefined when the model must not be able to call any. */
  readonly config: ToolConfig | undefined;
  /** For `additionalModelRequestFields`. */
  readonly fields: JsonObject;
  /** By sent name: those whose input is text. */
  readonly textTools: ReadonlySet<string>;
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

/** The tools of a request, or the one that takes its answer. */
export function encodeTools(
  request: ChatRequest,
  model: BedrockModel,
  { names, format, adjustments }: ToolContext,
): EncodedTools {
  if (format.kind === "tool") return encodeAnswerTool(format.offer, model, names);
  const offers = supported(readOffers(request), model, adjustments);
  if (offers.list.length === 0 || offers.choice.type === "none") return noTools;
  const isSingle = wantsSingleCalls(request, offers, { model, adjustments });
  return {
    config: {
      tools: offers.list.map((offer) => specOf(offer, model, names)),
      ...(!isSingle && choiceOf(offers.choice, names)),
    },
    fields: isSingle ? { tool_choice: singleChoiceOf(offers.choice, names) } : {},
    textTools: new Set(
      offers.list.filter(({ kind }) => kind === "custom").map(({ name }) => names.sentNameOf(name)),
    ),
    answerTool: undefined,
    isForced: offers.choice.type !== "auto",
  };
}

const noTools: EncodedTools = {
  config: undefined,
  fields: {},
  textTools: new Set(),
  answerTool: undefined,
  isForced: false,
};

function encodeAnswerTool(offer: Offer, model: BedrockModel, names: ToolNames): EncodedTools {
  const choice: Choice = model.capabilities.namedToolChoice
    ? { type: "named", name: offer.name }
    : { type: "any" };
  return {
    config: { tools: [specOf(offer, model, names)], ...choiceOf(choice, names) },
    fields: {},
    textTools: new Set(),
    answerTool: names.sentNameOf(offer.name),
    isForced: true,
  };
}

/** What is left of the offers at this model, or a refusal. */
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
    const message = `This model cannot be made to call a tool. Leave ${choiceField} out or send 'auto'.`;
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

/** Callers that rely on one call at a time may break on two, so this is no hint. */
function wantsSingleCalls(
  request: ChatRequest,
  { field }: Offers,
  { model, adjustments }: { readonly model: BedrockModel; readonly adjustments: Adjustments },
): boolean {
  // An answer to the deprecated functions has room for one call.
  if (field === "functions") return model.capabilities.singleToolCalls;
  if (request.parallel_tool_calls !== false) return false;
  if (model.capabilities.singleToolCalls) return true;
  adjustments.dropOrRefuse(
    "parallel_tool_calls",
    "This model cannot be held to one tool call at a time. Remove parallel_tool_calls.",
  );
  return false;
}

function specOf(offer: Offer, { capabilities }: BedrockModel, names: ToolNames): ToolSpec {
  const { name, description = "", schema, isStrict } = offer;
  return {
    toolSpec: {
      name: names.sentNameOf(name),
      ...(!isBlank(description) && { description }),
      inputSchema: { json: schema },
      ...(isStrict && capabilities.jsonSchema && { strict: true }),
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
 * The model's own form of a choice, the only one that can ask for single calls. The provider
 * refuses it beside its own form, so the whole choice moves here.
 */
function singleChoiceOf(choice: Choice, names: ToolNames): JsonObject {
  return choice.type === "named"
    ? { type: "tool", name: names.sentNameOf(choice.name), disable_parallel_tool_use: true }
    : { type: choice.type, disable_parallel_tool_use: true };
}
