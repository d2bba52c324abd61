import type { ChatRequest } from "../../../domain/chat/chat.ts";
import { objectOf, textOf } from "../../shared/json-fields.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { familyCapabilities } from "../models/family-capabilities.ts";
import type { ReasoningCircumstances, ReasoningPlan } from "../thinking/reasoning-plan.ts";

/**
 * `reasoning_effort`, or the operator's `reasoningConfig`, for the second generation of Nova, which
 * thinks only if it is asked to. At `high` it sizes its answers itself and refuses a cap and any
 * sampling. A cap is binding and an effort is not, so under a cap `high` is sent as `medium`, the
 * most that allows one. Source: Amazon Nova 2 user guide, "Extended thinking"; that `topK` is
 * refused too is reported.
 */
export function planNovaEffort(
  request: ChatRequest,
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

function wantedEffort(request: ChatRequest, { settings }: BedrockModel): string | undefined {
  const configured = objectOf(settings.additionalFields["reasoningConfig"]);
  if (configured === undefined) return efforts[request.reasoning_effort ?? "none"];
  return configured["type"] === "enabled" ? textOf(configured["maxReasoningEffort"]) : undefined;
}

/** Whether the caller or the operator wants shorter answers than the model would write. */
function isCapped(request: ChatRequest, { capabilities, settings }: BedrockModel): boolean {
  const asked = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const longest = familyCapabilities["nova-2"].maxOutputTokens ?? 0;
  const most = capabilities.maxOutputTokens ?? longest;
  return asked !== undefined || settings.defaultOutputTokens !== undefined || most < longest;
}

/** The model's own names; `none` and unknown ones request nothing. */
const efforts: Readonly<Record<string, string | undefined>> = {
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "high",
  max: "high",
};
