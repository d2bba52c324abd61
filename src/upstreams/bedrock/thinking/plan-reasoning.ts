import type { Conversation } from "../../../domain/chat/conversation.ts";
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
 * `reasoning_effort` in the model's own terms, or the operator's setting of thinking. Models that
 * do not reason answer without it: an effort is a request, not a result.
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
  const effort = request.reasoning_effort ?? undefined;
  const configured = objectOf(settings.additionalFields["thinking"]);
  if (configured !== undefined) return planConfigured(configured, capabilities, circumstances);
  switch (capabilities.reasoning) {
    case "none":
      return none;
    case "thinking-budget":
      if (effort === undefined || effort === "none") return none;
      return planBudget(effortIn(facts.efforts.thinking_budgets, effort) ?? 0, circumstances);
    case "adaptive":
      return planAdaptive(effort, capabilities, circumstances);
    case "effort-field":
      if (effort === undefined) return none;
      // Such a model always reasons; its lowest effort is the closest to none.
      return planField(effortIn(facts.efforts.field, effort) ?? effort);
  }
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
  if (budget !== undefined) return planBudget(budget, circumstances);
  if (!mayThink(circumstances)) return planWithout(capabilities);
  return { fields: { thinking }, isThinking: true };
}

/** Unlike a budget, this also works after a tool result without the thoughts before the call. */
function planAdaptive(
  effort: string | undefined,
  capabilities: Capabilities,
  circumstances: ReasoningCircumstances,
): ReasoningPlan {
  if (!mayThink(circumstances) || effort === "none") return planWithout(capabilities);
  if (effort === undefined) {
    return { fields: {}, isThinking: capabilities.thinkingOff !== "omit" };
  }
  return adaptive(effortOf(effort, capabilities), capabilities);
}

function adaptive(effort: string, { omitsThoughts }: Capabilities): ReasoningPlan {
  const display = omitsThoughts ? { display: "summarized" } : {};
  return {
    fields: { thinking: { type: "adaptive", ...display }, output_config: { effort } },
    isThinking: true,
    effort,
  };
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

function planBudget(wanted: number, circumstances: ReasoningCircumstances): ReasoningPlan {
  // The cap covers thinking and answer together and must exceed the budget: half is the answer's.
  const budget = Math.min(wanted, Math.floor(circumstances.maxTokens / 2));
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
 * `reasoning_effort`, or the operator's `reasoningConfig`, for the second generation of Nova, which
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
  const wanted = wantedEffort(request, model);
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

function wantedEffort(request: Conversation, { settings }: BedrockModel): string | undefined {
  const configured = objectOf(settings.additionalFields["reasoningConfig"]);
  if (configured === undefined) {
    // `none` and unknown ones request nothing.
    return effortIn(facts.efforts.nova, request.reasoning_effort ?? "none");
  }
  return configured["type"] === "enabled" ? textOf(configured["maxReasoningEffort"]) : undefined;
}

/** Whether the caller or the operator wants shorter answers than the model would write. */
function isCapped(request: Conversation, { capabilities, settings }: BedrockModel): boolean {
  const asked = request.max_completion_tokens ?? request.max_tokens ?? undefined;
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
