import { type Conversation, fieldOf } from "../../../domain/chat/conversation.ts";
import type { JsonObject } from "../../../domain/json-fields.ts";
import type { Adjustments } from "../adjustments.ts";
import type { FormatPlan } from "../answer-format/plan-answer-format.ts";
import type { ToolNames } from "./tool-names.ts";
import { readOffers, type Choice, type Offer, type Offers } from "./tool-offers.ts";

/** What a model can do with tools. */
export interface ToolRules {
  readonly tools: boolean;
  /** Supports forcing a tool call. */
  readonly toolChoice: boolean;
  /** Supports forcing a named tool. */
  readonly namedToolChoice: boolean;
  readonly singleToolCalls: boolean;
}

/** The tools that a request offers, including the one whose input is the answer. */
export interface ToolPlan {
  readonly list: readonly Offer[];
  readonly choice: Choice;
  /** The caller's own, if none of them may be called. */
  readonly forbidden: readonly Offer[];
  /** Whether the model may make one call at most. */
  readonly isSingle: boolean;
  /** Whether the caller's own are among them, and may be called. */
  readonly hasOffers: boolean;
  /** By sent name. */
  readonly answerTool: string | undefined;
  /** Whether the model must call one. */
  readonly isForced: boolean;
  /** The tools whose input is text, by sent name. */
  readonly textTools: ReadonlySet<string>;
}

export interface ToolContext {
  readonly names: ToolNames;
  readonly format: FormatPlan;
  readonly adjustments: Adjustments;
}

export function planTools(
  request: Conversation,
  rules: ToolRules,
  { names, format, adjustments }: ToolContext,
): ToolPlan {
  const offers = supported(readOffers(request), rules, adjustments);
  const own = offers.choice.type === "none" ? [] : offers.list;
  const hasOffers = own.length > 0;
  const isSingle = hasOffers && wantsSingleCalls(request, offers, { rules, adjustments });
  const answer = format.kind === "tool" ? format.offer : undefined;
  const list = answer === undefined ? own : [...own, answer];
  const choice = answer === undefined ? offers.choice : answerChoice(answer, own, rules);
  return {
    list,
    choice,
    forbidden: offers.choice.type === "none" ? offers.list : [],
    isSingle,
    hasOffers,
    answerTool: answer && names.sentNameOf(answer.name),
    isForced: list.length > 0 && choice.type !== "auto",
    textTools: new Set(
      list.filter(({ kind }) => kind === "custom").map(({ name }) => names.sentNameOf(name)),
    ),
  };
}

/** A choice in the form of Claude's own requests, the only one that can ask for single calls. */
export function claudeChoice({ choice, isSingle }: ToolPlan, names: ToolNames): JsonObject {
  return {
    type: choice.type === "named" ? "tool" : choice.type,
    ...(choice.type === "named" && { name: names.sentNameOf(choice.name) }),
    ...(isSingle && choice.type !== "none" && { disable_parallel_tool_use: true }),
  };
}

/**
 * With the caller's tools, any tool may be called, but one must be: text would not be the answer.
 */
function answerChoice(offer: Offer, own: readonly Offer[], { namedToolChoice }: ToolRules): Choice {
  const isAlone = own.length === 0 && namedToolChoice;
  return isAlone ? { type: "named", name: offer.name } : { type: "any" };
}

/** The offers that this model supports, or a refusal. */
function supported(offers: Offers, rules: ToolRules, adjustments: Adjustments): Offers {
  const { list, choice, field, choiceField } = offers;
  if (list.length === 0 || choice.type === "none") return offers;
  if (!rules.tools) {
    adjustments.dropOrRefuse(field, `This model cannot call tools. Remove ${field}.`);
    return { ...offers, list: [] };
  }
  if (choice.type === "auto") return offers;
  if (!rules.toolChoice) {
    const message = `This model does not support forced tool calls. Omit ${choiceField} or send 'auto'.`;
    adjustments.dropOrRefuse(choiceField, message, "auto");
    return { ...offers, choice: { type: "auto" } };
  }
  if (choice.type !== "named" || rules.namedToolChoice) return offers;
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
  { rules, adjustments }: { readonly rules: ToolRules; readonly adjustments: Adjustments },
): boolean {
  // An answer to the deprecated functions has room for one call.
  if (isOld) return rules.singleToolCalls;
  if (request.options.parallelToolCalls !== false) return false;
  if (rules.singleToolCalls) return true;
  const field = fieldOf(request, "parallelToolCalls");
  adjustments.dropOrRefuse(
    field,
    `This model cannot be limited to one tool call at a time. Remove ${field}.`,
  );
  return false;
}
