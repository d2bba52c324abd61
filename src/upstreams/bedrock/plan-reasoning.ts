import type { ChatRequest } from "../../domain/chat.ts";
import { numberOf, objectOf, type JsonObject } from "../shared/json-fields.ts";
import type { BedrockModel } from "./bedrock-model.ts";
import type { Turn } from "./converse-body.ts";
import { planNovaEffort } from "./nova/effort.ts";
import { holdsResults } from "./turns.ts";

export interface ReasoningPlan {
  /** For `additionalModelRequestFields`. */
  readonly fields: JsonObject;
  /** Whether the model thinks before it answers, which rules out choosing its sampling. */
  readonly isThinking: boolean;
  /** Set where the model takes no cap of its answer. */
  readonly isUncapped?: true;
  /** The caller's effort as it is sent, where that is another. */
  readonly sentEffort?: string;
}

export interface ReasoningCircumstances {
  /** Whether the model must call a tool. */
  readonly isForced: boolean;
  readonly maxTokens: number;
  readonly lastTurn: Turn | undefined;
}

/**
 * `reasoning_effort` in the model's own terms, or the thinking that the operator has set. Models
 * that do not reason answer without: it is an effort asked for, not a result.
 */
export function planReasoning(
  request: ChatRequest,
  model: BedrockModel,
  circumstances: ReasoningCircumstances,
): ReasoningPlan {
  const { capabilities, settings } = model;
  if (capabilities.reasoning === "nova-effort") {
    return planNovaEffort(request, model, circumstances);
  }
  const effort = request.reasoning_effort ?? undefined;
  const configured = objectOf(settings.additionalFields["thinking"]);
  if (configured !== undefined) return planConfigured(configured, circumstances);
  if (effort === undefined) return none;
  switch (capabilities.reasoning) {
    case "none":
      return none;
    case "thinking-budget":
      return effort === "none" ? none : planBudget(budgets[effort] ?? 0, circumstances);
    case "adaptive":
      if (effort === "none" || !mayThink(circumstances)) return none;
      // Unlike a budget, this is taken between a call and what follows its result, too.
      return {
        fields: {
          thinking: { type: "adaptive" },
          output_config: { effort: adaptiveEfforts[effort] ?? effort },
        },
        isThinking: true,
      };
    case "effort-field":
      // Such a model always reasons; the least it can is the nearest to nothing.
      return { fields: { reasoning_effort: fieldEfforts[effort] ?? effort }, isThinking: false };
  }
}

const none: ReasoningPlan = { fields: {}, isThinking: false };

function planConfigured(
  thinking: JsonObject,
  circumstances: ReasoningCircumstances,
): ReasoningPlan {
  if (thinking["type"] === "disabled") return { fields: { thinking }, isThinking: false };
  const budget = numberOf(thinking["budget_tokens"]);
  if (budget !== undefined) return planBudget(budget, circumstances);
  return mayThink(circumstances) ? { fields: { thinking }, isThinking: true } : none;
}

function planBudget(wanted: number, circumstances: ReasoningCircumstances): ReasoningPlan {
  // The cap holds for thinking and answer together and must exceed the budget: half is the answer's.
  const budget = Math.min(wanted, Math.floor(circumstances.maxTokens / 2));
  const continuesCalls =
    circumstances.lastTurn !== undefined && holdsResults(circumstances.lastTurn);
  // Between a call and what follows its result, the model wants its earlier thoughts back with
  // their signature, and OpenAI's messages carry none.
  if (budget < leastBudget || continuesCalls || !mayThink(circumstances)) return none;
  return {
    fields: { thinking: { type: "enabled", budget_tokens: budget } },
    isThinking: true,
  };
}

/** A model that must call a tool, or go on from words of its own, is refused leave to think. */
function mayThink({ isForced, lastTurn }: ReasoningCircumstances): boolean {
  return !isForced && lastTurn?.role === "user";
}

/** The provider's lower limit. */
const leastBudget = 1_024;

const budgets: Readonly<Record<string, number | undefined>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
};

/** Where names differ from OpenAI's. Not all of these models know `xhigh`; they all know `high`. */
const adaptiveEfforts: Readonly<Record<string, string | undefined>> = {
  minimal: "low",
  xhigh: "high",
};

const fieldEfforts: Readonly<Record<string, string | undefined>> = {
  none: "low",
  minimal: "low",
  xhigh: "high",
  max: "high",
};
