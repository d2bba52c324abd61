import { type Conversation, isOwnCap } from "../../../domain/chat/conversation.ts";
import { type Adjustments, isBlank } from "./adjustments.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import type { InferenceConfig } from "./converse-body.ts";

/** The default if neither the caller nor the model's configuration sets a cap. */
const usualMaxTokens = 4_096;

/**
 * The cap of the answer. Without one, some models stop after 512 tokens. The provider reserves the
 * cap from the operator's quota until the answer is complete, so the operator can set a lower
 * default than the model's maximum for callers that set none.
 *
 * A caller's cap is sent unchanged or refused; if the operator allows it, the cap is lowered and
 * the caller is informed. If only the built-in table has a lower limit, the provider decides,
 * because its refusal names the limit.
 */
export function maxTokensOf(
  request: Conversation,
  model: BedrockModel,
  adjustments: Adjustments,
): number {
  const { capabilities, settings } = model;
  const most = capabilities.maxOutputTokens ?? Number.POSITIVE_INFINITY;
  const asked = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  if (asked === undefined) {
    const usual = settings.defaultOutputTokens ?? capabilities.maxOutputTokens ?? usualMaxTokens;
    return Math.min(usual, most);
  }
  if (request[isOwnCap] === true) return Math.min(asked, most);
  const { statedOutputTokens: stated } = model;
  if (stated === undefined || asked <= stated) return asked;
  const isNewer = typeof request.max_completion_tokens === "number";
  const field = isNewer ? "max_completion_tokens" : "max_tokens";
  const message =
    `${field} is too large: ${asked}. This model supports at most ${stated} completion tokens, ` +
    `whereas you provided ${asked}.`;
  adjustments.dropOrRefuse(field, message, stated);
  return stated;
}

export interface InferencePlan {
  /** Undefined if the model accepts no cap. */
  readonly maxTokens: number | undefined;
  readonly isThinking: boolean;
  readonly adjustments: Adjustments;
}

export function encodeInference(
  request: Conversation,
  model: BedrockModel,
  { maxTokens, isThinking, adjustments }: InferencePlan,
): InferenceConfig {
  const { sent: stopSequences } = stopsOf(request, model);
  const sampling = samplingOf(request, model, adjustments);
  if (isThinking) reportDroppedSampling(sampling, adjustments);
  return {
    ...(maxTokens !== undefined && { maxTokens }),
    ...(!isThinking && sampling),
    ...(stopSequences.length > 0 && { stopSequences }),
  };
}

type Sampling = Pick<InferenceConfig, "temperature" | "topP">;

function samplingOf(
  request: Conversation,
  model: BedrockModel,
  adjustments: Adjustments,
): Sampling {
  const { capabilities } = model;
  const asked = supported("temperature", request, {
    isSupported: capabilities.temperature,
    adjustments,
  });
  // OpenAI's scale ends at 2 and this one at 1, so 1 is the largest value sent.
  if (asked !== undefined && asked > 1) adjustments.sendAs("temperature", 1);
  const temperature = asked === undefined ? undefined : Math.min(asked, 1);
  const topP = supported("top_p", request, { isSupported: capabilities.topP, adjustments });
  if (temperature === undefined) return topP === undefined ? {} : { topP };
  if (topP === undefined) return { temperature };
  if (capabilities.topPWithTemperature) return { temperature, topP };
  // One of the two must be dropped. OpenAI's default of 1 has no effect, and clients send it.
  if (request.temperature === 1 && topP < 1) return { topP };
  if (topP < 1) adjustments.sendAs("top_p", "dropped");
  return { temperature };
}

/** The caller's value, if the model supports the field. A value of 1 has no effect. */
function supported(
  field: "temperature" | "top_p",
  request: Conversation,
  {
    isSupported,
    adjustments,
  }: { readonly isSupported: boolean; readonly adjustments: Adjustments },
): number | undefined {
  const value = request[field] ?? undefined;
  if (value === undefined || isSupported) return value;
  if (value === 1) return undefined;
  adjustments.dropOrRefuse(field, `This model does not support ${field}. Omit it or send 1.`);
  return undefined;
}

/** A model that thinks does not accept sampling settings. A value of 1 has no effect. */
function reportDroppedSampling({ temperature, topP }: Sampling, adjustments: Adjustments): void {
  if (temperature !== undefined && temperature < 1) adjustments.sendAs("temperature", "dropped");
  if (topP !== undefined && topP < 1) adjustments.sendAs("top_p", "dropped");
}

/** The stop sequences of an answer. */
export interface Stops {
  /** Those that are sent to the model. */
  readonly sent: readonly string[];
  /** Those that the gateway finds in the text itself. */
  readonly kept: readonly string[];
}

/** Some models refuse sequences that consist only of white space. */
export function stopsOf(request: Conversation, { capabilities }: BedrockModel): Stops {
  const stop = request.stop ?? [];
  const all = (typeof stop === "string" ? [stop] : stop).filter((text) => text !== "");
  if (!capabilities.stop) return { sent: [], kept: all };
  return { sent: all.filter((text) => !isBlank(text)), kept: all.filter(isBlank) };
}
