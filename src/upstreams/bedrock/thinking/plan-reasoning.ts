import { type Conversation, outputCap, type Thinking } from "../../../domain/chat/conversation.ts";
import {
  countOf,
  type JsonObject,
  numberOf,
  objectOf,
  textOf,
} from "../../../domain/json-fields.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import type { Capabilities } from "../config/capabilities.ts";
import { holdsResults } from "../encode/turns.ts";
import type { ContentBlock, Turn } from "../encode/converse-body.ts";
import { knownFamilies } from "../models/facts.ts";
import facts from "../models/facts.json" with { type: "json" };

/**
 * The caller's wish to let the model think, in the model's own terms, or the operator's setting of
 * thinking. Models that do not reason answer without it: a wish is a request, not a result.
 */
export function planReasoning(
  request: Conversation,
  model: BedrockModel,
  circumstances: ReasoningCircumstances,
): ReasoningPlan {
  const { capabilities, settings } = model;
  if (capabilities.reasoning === "nova-effort") {
    return planNovaEffort(request, model, circumstances);
  }
  const wish = wishOf(request);
  const configured = objectOf(settings.additionalFields["thinking"]);
  if (configured !== undefined) return planConfigured(configured, capabilities, circumstances);
  switch (capabilities.reasoning) {
    case "none":
      return none;
    case "thinking-budget":
      return wish.isOn ? planBudget(budgetOf(wish), wish, circumstances) : none;
    case "adaptive":
      return planAdaptive(wish, capabilities, circumstances);
    case "effort-field": {
      // Such a model always reasons; its lowest effort is the closest to none.
      const effort = wish.isOff ? "none" : effortOrBudget(wish);
      if (effort === undefined) return none;
      return planField(effortIn(facts.efforts.field, effort) ?? effort);
    }
  }
}

/** What a caller wants. Both flags are false if it did not say. */
interface Wish extends Thinking {
  readonly isOn: boolean;
  readonly isOff: boolean;
}

/**
 * In chat and Responses an effort asks for thoughts. In Messages it only says how thorough the
 * model should be; its own mode asks for thoughts.
 */
function wishOf({ thinking = {}, wire }: Conversation): Wish {
  const { effort, budget, mode } = thinking;
  const isOff = mode === "disabled" || effort === "none";
  const isAsked = mode !== undefined || budget !== undefined;
  const isOn = !isOff && (isAsked || (wire !== "messages" && effort !== undefined));
  return { ...thinking, isOn, isOff };
}

/** Of one that says neither an effort nor a budget, an effort that most answers do well with. */
function budgetOf({ budget, effort = "medium" }: Wish): number {
  return budget ?? effortIn(facts.efforts.thinking_budgets, effort) ?? 0;
}

/** The effort whose budget is the nearest that is not larger, if the caller named a budget alone. */
function effortOrBudget({ effort, budget }: Wish): string | undefined {
  if (effort !== undefined || budget === undefined) return effort;
  const efforts = Object.entries(facts.efforts.thinking_budgets);
  return efforts.findLast(([, tokens]) => tokens <= budget)?.[0] ?? "minimal";
}

function planField(effort: string): ReasoningPlan {
  return { fields: { reasoning_effort: effort }, isThinking: false, effort };
}

const none: ReasoningPlan = { fields: {}, isThinking: false };

function planConfigured(
  thinking: JsonObject,
  capabilities: Capabilities,
  circumstances: ReasoningCircumstances,
): ReasoningPlan {
  if (thinking["type"] === "disabled") return { fields: { thinking }, isThinking: false };
  const budget = numberOf(thinking["budget_tokens"]);
  if (budget !== undefined) return planBudget(budget, {}, circumstances);
  if (!mayThink(circumstances)) return planWithout(capabilities);
  return { fields: { thinking }, isThinking: true };
}

/** Unlike a budget, this also works after a tool result without the thoughts before the call. */
function planAdaptive(
  wish: Wish,
  capabilities: Capabilities,
  circumstances: ReasoningCircumstances,
): ReasoningPlan {
  if (!mayThink(circumstances) || wish.isOff) return planWithout(capabilities);
  const wanted = effortOrBudget(wish);
  const effort = wanted === undefined ? undefined : effortOf(wanted, capabilities);
  if (wish.isOn) return adaptive(effort, capabilities, wish.display);
  const isThinking = capabilities.thinkingOff !== "omit";
  if (effort === undefined) return { fields: {}, isThinking };
  return { fields: { output_config: { effort } }, isThinking, effort };
}

/** Without a wish about thoughts, a model that omits them is asked for their summary. */
function adaptive(
  effort: string | undefined,
  { omitsThoughts }: Capabilities,
  wanted?: string,
): ReasoningPlan {
  const display = wanted === "omitted" ? wanted : "summarized";
  const thinking = { type: "adaptive", ...(omitsThoughts && { display }) };
  if (effort === undefined) return { fields: { thinking }, isThinking: true };
  return { fields: { thinking, output_config: { effort } }, isThinking: true, effort };
}

/** No thinking, or the lowest effort of a model that always thinks. */
function planWithout(capabilities: Capabilities): ReasoningPlan {
  switch (capabilities.thinkingOff) {
    case "omit":
      return none;
    case "disabled":
      return { fields: { thinking: { type: "disabled" } }, isThinking: false };
    case "between-tools":
      // It still thinks between calls, and needs these thoughts back.
      return { fields: { thinking: { type: "between_tools" } }, isThinking: true };
    case "never":
      return adaptive("low", capabilities);
  }
}

/** The cap covers thinking and answer together and must exceed the budget. */
function planBudget(
  wanted: number,
  { budget: asked }: Thinking,
  circumstances: ReasoningCircumstances,
): ReasoningPlan {
  // If the caller did not divide the tokens itself, half are the answer's.
  const { maxTokens } = circumstances;
  const most = asked === undefined ? Math.floor(maxTokens / 2) : maxTokens - 1;
  const budget = Math.min(wanted, most);
  if (budget < leastBudget || lacksThoughts(circumstances) || !mayThink(circumstances)) return none;
  return {
    fields: { thinking: { type: "enabled", budget_tokens: budget } },
    isThinking: true,
  };
}

/**
 * After a tool result, such a model needs the thoughts before the call back, with their signature.
 */
function lacksThoughts({ turns }: ReasoningCircumstances): boolean {
  const last = turns.at(-1);
  return last !== undefined && holdsResults(last) && !beginsWithThoughts(turns.at(-2));
}

/** Thinking is refused where the model must call a tool or continue its own text. */
function mayThink({ isForced, turns }: ReasoningCircumstances): boolean {
  return !isForced && turns.at(-1)?.role === "user";
}

/** The provider's lower limit. */
const leastBudget = 1_024;

/** What an effort of the caller's is in the model's own terms; undefined if it has none. */
function effortIn<Value>(efforts: Readonly<Record<string, Value>>, effort: string) {
  return Object.hasOwn(efforts, effort) ? efforts[effort] : undefined;
}

/** The models use OpenAI's names, as far as each supports the effort. */
function effortOf(effort: string, { xhighEffort }: Capabilities): string {
  if (effort === "minimal") return "low";
  return effort === "xhigh" && !xhighEffort ? "high" : effort;
}

export interface ReasoningPlan {
  /** For `additionalModelRequestFields`. */
  readonly fields: JsonObject;
  /**
   * Whether the model thinks before it answers. Then its sampling cannot be set, and it may get its
   * earlier thoughts back.
   */
  readonly isThinking: boolean;
  /** Set if the model accepts no cap of its answer. */
  readonly isUncapped?: true;
  /** The effort that is sent, in the model's words. */
  readonly effort?: string;
}

interface ReasoningCircumstances {
  /** Whether the model must call a tool. */
  readonly isForced: boolean;
  readonly maxTokens: number;
  readonly turns: readonly Turn[];
}

/**
 * The effort, or the operator's `reasoningConfig`, for the second generation of Nova, which
 * thinks only if it is asked to. At `high` it sizes its answers itself and refuses a cap and any
 * sampling. A cap is binding and an effort is not, so under a cap `high` is sent as `medium`, the
 * most that allows one. Source: Amazon Nova 2 user guide, "Extended thinking"; that `topK` is
 * refused too is reported.
 */
function planNovaEffort(
  request: Conversation,
  model: BedrockModel,
  { turns }: ReasoningCircumstances,
): ReasoningPlan {
  const wanted = wantedEffort(wishOf(request), model);
  // It cannot think before text that it must continue.
  if (wanted === undefined || turns.at(-1)?.role !== "user") {
    return { fields: {}, isThinking: false };
  }
  const isFree = wanted === "high" && !isCapped(request, model);
  const maxReasoningEffort = wanted === "high" && !isFree ? "medium" : wanted;
  return {
    fields: { reasoningConfig: { type: "enabled", maxReasoningEffort } },
    isThinking: isFree,
    ...(isFree && { isUncapped: true }),
    effort: maxReasoningEffort,
  };
}

function wantedEffort(wish: Wish, { settings }: BedrockModel): string | undefined {
  const configured = objectOf(settings.additionalFields["reasoningConfig"]);
  if (configured === undefined) {
    // Unknown ones request nothing.
    return wish.isOn ? effortIn(facts.efforts.nova, effortOrBudget(wish) ?? "medium") : undefined;
  }
  return configured["type"] === "enabled" ? textOf(configured["maxReasoningEffort"]) : undefined;
}

/** Whether the caller or the operator wants shorter answers than the model would write. */
function isCapped(request: Conversation, { capabilities, settings }: BedrockModel): boolean {
  const asked = outputCap(request) ?? request.ownCap;
  const most = capabilities.maxOutputTokens ?? longestOfNova;
  return asked !== undefined || settings.defaultOutputTokens !== undefined || most < longestOfNova;
}

const longestOfNova = knownFamilies.capabilitiesOf("nova-2").maxOutputTokens ?? 0;

/** The turns for a model that does not think in this request, which accepts no thoughts either. */
export function withoutThoughts(turns: readonly Turn[]): readonly Turn[] {
  return turns.map((turn) =>
    turn.content.some(isThought)
      ? { ...turn, content: turn.content.filter((block) => !isThought(block)) }
      : turn,
  );
}

function beginsWithThoughts(turn: Turn | undefined): boolean {
  const first = turn?.content[0];
  return first !== undefined && isThought(first);
}

function isThought(block: ContentBlock): boolean {
  return "reasoningContent" in block;
}

/**
 * Fields requested from Claude's own answer, because Converse's `TokenUsage` counts thoughts only
 * as output. According to the SDK's documents, a field that the answer lacks is ignored. That this
 * field has the count is reported (LiteLLM reads it).
 */
export const thoughtCountPaths = ["/usage/output_tokens_details"] as const;

/** Whether the model reports such counts, and thinks. */
export function countsThoughts({ reasoning }: Capabilities, isThinking: boolean): boolean {
  return isThinking && (reasoning === "thinking-budget" || reasoning === "adaptive");
}

/**
 * Tokens of thoughts in `additionalModelResponseFields`, which are part of the output; 0 if absent.
 */
export function thoughtTokensIn(modelFields: unknown): number {
  const usage = objectOf(objectOf(modelFields)?.["usage"]);
  return countOf(objectOf(usage?.["output_tokens_details"])?.["thinking_tokens"]) ?? 0;
}
