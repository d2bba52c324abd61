import { type Conversation, outputCap } from "../../../domain/chat/conversation.ts";
import { countOf, objectOf, textOf } from "../../../domain/json-fields.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import type { Capabilities } from "../config/capabilities.ts";
import {
  effortOrBudget,
  noThinking,
  planConfigured,
  planThinking,
  type ThinkingCircumstances,
  type ThinkingPlan,
  type ThinkingWish,
  thinkingWish,
} from "../../shared/claude/thinking.ts";
import type { Turn } from "../encode/converse-body.ts";
import { knownFamilies } from "../models/facts.ts";
import facts from "../models/facts.json" with { type: "json" };

/**
 * The caller's wish to let the model think, in the model's own terms, or the operator's setting of
 * thinking. Models that do not reason answer without it: a wish is a request, not a result.
 */
export function planReasoning(
  request: Conversation,
  model: BedrockModel,
  { isForced, turns, ...rest }: ReasoningCircumstances,
): ReasoningPlan {
  const { capabilities, settings } = model;
  if (capabilities.reasoning === "nova-effort") return planNovaEffort(request, model, turns);
  const wish = thinkingWish(request);
  const configured = objectOf(settings.additionalFields["thinking"]);
  const circumstances = {
    ...rest,
    mayThink: !isForced && turns.at(-1)?.role === "user",
  };
  if (configured !== undefined) return planConfigured(configured, capabilities, circumstances);
  if (capabilities.reasoning !== "effort-field") {
    return planThinking(wish, capabilities, circumstances);
  }
  // Such a model always reasons; its lowest effort is the closest to none.
  const effort = wish.isOff ? "none" : effortOrBudget(wish);
  if (effort === undefined) return noThinking;
  return planField(effortIn(facts.efforts.field, effort) ?? effort);
}

function planField(effort: string): ReasoningPlan {
  return { fields: { reasoning_effort: effort }, isThinking: false, effort };
}

/** What an effort of the caller's is in the model's own terms; undefined if it has none. */
function effortIn(efforts: Readonly<Record<string, string>>, effort: string): string | undefined {
  return Object.hasOwn(efforts, effort) ? efforts[effort] : undefined;
}

/** Its fields are for `additionalModelRequestFields`. */
export interface ReasoningPlan extends ThinkingPlan {
  /** Set if the model accepts no cap of its answer. */
  readonly isUncapped?: true;
}

interface ReasoningCircumstances extends Omit<ThinkingCircumstances, "mayThink"> {
  /** Whether the model must call a tool. */
  readonly isForced: boolean;
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
  turns: readonly Turn[],
): ReasoningPlan {
  const wanted = wantedEffort(thinkingWish(request), model);
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

function wantedEffort(wish: ThinkingWish, { settings }: BedrockModel): string | undefined {
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
