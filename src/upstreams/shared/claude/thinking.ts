import { type Conversation, fieldOf, type Thinking } from "../../../domain/chat/conversation.ts";
import { effortBudgets, nearestEffort } from "../../../domain/chat/thinking-effort.ts";
import { type JsonObject, numberOf } from "../../../domain/json-fields.ts";
import type { Adjustments } from "../adjustments.ts";

/** How a model of Claude is made to think. */
export interface ThinkingFacts {
  /** How thinking is turned off: by omission, by a type, or not at all. */
  readonly thinkingOff: "omit" | "disabled" | "between-tools" | "never";
  /** An effort between `high` and `max`. */
  readonly xhighEffort: boolean;
  /** Omits thoughts unless a summary is requested. */
  readonly omitsThoughts: boolean;
}

/** What a caller wants. Both flags are false if it did not say. */
export interface ThinkingWish extends Thinking {
  readonly isOn: boolean;
  readonly isOff: boolean;
}

export interface ThinkingPlan {
  /** `thinking` and `output_config` of the model's own request. */
  readonly fields: JsonObject;
  /**
   * Whether the model thinks before it answers. Then its sampling cannot be set, and it may get its
   * earlier thoughts back.
   */
  readonly isThinking: boolean;
  /** The effort that is sent, in the model's words. */
  readonly effort?: string;
}

export interface ThinkingCircumstances {
  readonly maxTokens: number;
  /** False where the model must call a tool or continue its own text. */
  readonly mayThink: boolean;
  /** The last turn has results of tools, and the turn of their calls does not begin with a thought. */
  readonly lacksThoughts: boolean;
}

export const noThinking: ThinkingPlan = { fields: {}, isThinking: false };

/**
 * In chat and Responses an effort asks for thoughts, to be read. In Messages it only says how
 * thorough the model should be; its own mode asks for thoughts, which some models do not show
 * unless `display` says so.
 */
export function thinkingWish({ thinking = {}, wire }: Conversation): ThinkingWish {
  const { effort, budget, mode, display } = thinking;
  const isOff = mode === "disabled" || effort === "none";
  const isAsked = mode !== undefined || budget !== undefined;
  const isOn = !isOff && (isAsked || (wire !== "messages" && effort !== undefined));
  const shown = display ?? (wire === "messages" ? undefined : "summarized");
  return { effort, budget, mode, display: shown, isOn, isOff };
}

/** The effort that a caller named, or that its budget stands for. */
export function effortOrBudget({ effort, budget }: Thinking): string | undefined {
  return effort ?? (budget === undefined ? undefined : nearestEffort(budget));
}

/** The operator's own `thinking`. */
export function planConfigured(
  thinking: JsonObject,
  facts: ThinkingFacts,
  circumstances: ThinkingCircumstances,
): ThinkingPlan {
  if (thinking["type"] === "disabled") return { fields: { thinking }, isThinking: false };
  const budget = numberOf(thinking["budget_tokens"]);
  if (budget !== undefined) return budgetPlan(budget, circumstances.maxTokens / 2, circumstances);
  if (!circumstances.mayThink) return planWithout(facts, "summarized");
  return { fields: { thinking }, isThinking: true };
}

/** The caller's wish for a model that thinks so. */
export function planThinking(
  wish: ThinkingWish,
  facts: ThinkingFacts & { readonly reasoning: string },
  circumstances: ThinkingCircumstances,
): ThinkingPlan {
  if (facts.reasoning === "thinking-budget") return planBudget(wish, circumstances);
  return facts.reasoning === "adaptive" ? planAdaptive(wish, facts, circumstances) : noThinking;
}

/**
 * For models that take no budget. Unlike a budget, this also works after a tool result without the
 * thoughts before the call.
 */
function planAdaptive(
  wish: ThinkingWish,
  facts: ThinkingFacts,
  { mayThink }: ThinkingCircumstances,
): ThinkingPlan {
  if (!mayThink || wish.isOff) return planWithout(facts, wish.display);
  const wanted = effortOrBudget(wish);
  const effort = wanted === undefined ? undefined : effortOf(wanted, facts);
  if (wish.isOn) return adaptive(effort, facts, wish.display);
  const isThinking = facts.thinkingOff !== "omit";
  if (effort === undefined) return { fields: {}, isThinking };
  return { fields: { output_config: { effort } }, isThinking, effort };
}

/** For models that take only a budget. */
function planBudget(wish: ThinkingWish, circumstances: ThinkingCircumstances): ThinkingPlan {
  if (!wish.isOn) return noThinking;
  const { maxTokens } = circumstances;
  const { budget, effort = "medium" } = wish;
  if (budget !== undefined) return budgetPlan(budget, maxTokens - 1, circumstances);
  const wanted = Object.entries(effortBudgets).find(([name]) => name === effort)?.[1] ?? 0;
  // The caller did not divide its tokens: half are the answer's.
  return budgetPlan(wanted, maxTokens / 2, circumstances);
}

function adaptive(
  effort: string | undefined,
  { omitsThoughts }: ThinkingFacts,
  wanted: string | undefined,
): ThinkingPlan {
  const display = wanted === "omitted" ? wanted : "summarized";
  const isShown = omitsThoughts && wanted !== undefined;
  const thinking = { type: "adaptive", ...(isShown && { display }) };
  if (effort === undefined) return { fields: { thinking }, isThinking: true };
  return { fields: { thinking, output_config: { effort } }, isThinking: true, effort };
}

/** No thinking, or the lowest effort of a model that always thinks. */
function planWithout(facts: ThinkingFacts, display: string | undefined): ThinkingPlan {
  switch (facts.thinkingOff) {
    case "omit":
      return noThinking;
    case "disabled":
      return { fields: { thinking: { type: "disabled" } }, isThinking: false };
    case "between-tools":
      // It still thinks between calls, and needs these thoughts back.
      return { fields: { thinking: { type: "between_tools" } }, isThinking: true };
    case "never":
      return adaptive("low", facts, display);
  }
}

/**
 * The cap covers thinking and answer together and must exceed the budget. After a tool result, such
 * a model needs the thoughts before the call back, with their signature.
 */
function budgetPlan(
  wanted: number,
  most: number,
  { mayThink, lacksThoughts }: ThinkingCircumstances,
): ThinkingPlan {
  const budget = Math.min(wanted, Math.floor(most));
  if (budget < leastBudget || lacksThoughts || !mayThink) return noThinking;
  return {
    fields: { thinking: { type: "enabled", budget_tokens: budget } },
    isThinking: true,
  };
}

/** The provider's lower limit. */
const leastBudget = 1_024;

/** The models use OpenAI's names, as far as each supports the effort. */
function effortOf(effort: string, { xhighEffort }: ThinkingFacts): string {
  if (effort === "minimal") return "low";
  return effort === "xhigh" && !xhighEffort ? "high" : effort;
}

/** Tells the caller of another effort, or of thoughts that it asked for and does not get. */
export function reportThinking(
  request: Conversation,
  { effort, isThinking }: ThinkingPlan,
  adjustments: Adjustments,
): void {
  const { effort: asked, mode } = request.thinking ?? {};
  const isOther = asked !== undefined && effort !== undefined && asked !== effort;
  if (isOther) adjustments.sendAs(fieldOf(request, "effort"), effort);
  const isWanted = mode === "enabled" || mode === "adaptive";
  if (isWanted && !isThinking && effort === undefined) adjustments.sendAs("thinking", "dropped");
}
