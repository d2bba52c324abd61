import type { ChatRequest } from "../../../domain/chat/chat.ts";
import { numberOf, objectOf, type JsonObject } from "../../shared/json-fields.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { planNovaEffort } from "../nova/effort.ts";
import type { Capabilities } from "../config/capabilities.ts";
import { holdsResults } from "../encode/turns.ts";
import type { ReasoningCircumstances, ReasoningPlan } from "./reasoning-plan.ts";
import { beginsWithThoughts } from "./turn-thoughts.ts";

/**
 * `reasoning_effort` in the model's own terms, or the operator's setting of thinking. Models that
 * do not reason answer without it: an effort is a request, not a result.
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
  if (configured !== undefined) return planConfigured(configured, capabilities, circumstances);
  switch (capabilities.reasoning) {
    case "none":
      return none;
    case "thinking-budget":
      if (effort === undefined || effort === "none") return none;
      return planBudget(budgets[effort] ?? 0, circumstances);
    case "adaptive":
      return planAdaptive(effort, capabilities, circumstances);
    case "effort-field":
      if (effort === undefined) return none;
      // Such a model always reasons; its lowest effort is the closest to none.
      return planField(fieldEfforts[effort] ?? effort);
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

const budgets: Readonly<Record<string, number | undefined>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
};

/** The models use OpenAI's names, as far as each supports the effort. */
function effortOf(effort: string, { xhighEffort }: Capabilities): string {
  if (effort === "minimal") return "low";
  return effort === "xhigh" && !xhighEffort ? "high" : effort;
}

const fieldEfforts: Readonly<Record<string, string | undefined>> = {
  none: "low",
  minimal: "low",
  xhigh: "high",
  max: "high",
};
