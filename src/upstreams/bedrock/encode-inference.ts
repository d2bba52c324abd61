import { isOwnCap, type ChatRequest } from "../../domain/chat.ts";
import type { BedrockModel } from "./bedrock-model.ts";
import { isBlank } from "./blank-text.ts";
import type { InferenceConfig } from "./converse-body.ts";
import { unsupported } from "./refusal.ts";

/** Where neither the caller nor the model's configuration says. */
const usualMaxTokens = 4_096;

/**
 * The cap of the answer: without one some models stop after 512 tokens. The provider reserves it
 * from the operator's quota until the answer is whole, so the operator can choose a lower one than
 * the model's for callers who give none.
 *
 * A caller's cap is sent as it is or refused, never lowered: callers rely on it. Where only the
 * table says that the model writes less, the provider decides, which names its limit when it
 * refuses. Throws `UpstreamFailure` `unsupported`, so that another target may take it.
 */
export function maxTokensOf(request: ChatRequest, model: BedrockModel): number {
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
  const field =
    typeof request.max_completion_tokens === "number" ? "max_completion_tokens" : "max_tokens";
  throw unsupported(
    field,
    `${field} is too large: ${asked}. This model supports at most ${stated} completion tokens, ` +
      `whereas you provided ${asked}.`,
  );
}

export interface InferencePlan {
  /** Undefined where the model takes no cap. */
  readonly maxTokens: number | undefined;
  /** Models that think choose their sampling themselves. */
  readonly isThinking: boolean;
}

export function encodeInference(
  request: ChatRequest,
  model: BedrockModel,
  { maxTokens, isThinking }: InferencePlan,
): InferenceConfig {
  const stopSequences = model.capabilities.stop ? stopSequencesOf(request) : [];
  const sampling = samplingOf(request, model);
  return {
    ...(maxTokens !== undefined && { maxTokens }),
    ...(!isThinking && sampling),
    ...(stopSequences.length > 0 && { stopSequences }),
  };
}

type Sampling = Pick<InferenceConfig, "temperature" | "topP">;

function samplingOf(request: ChatRequest, model: BedrockModel): Sampling {
  const temperature = temperatureOf(request, model);
  const topP = topPOf(request, model);
  if (temperature === undefined) return topP === undefined ? {} : { topP };
  if (topP === undefined) return { temperature };
  if (model.capabilities.topPWithTemperature) return { temperature, topP };
  // One of the two has to go. OpenAI's default of 1 says nothing, and clients send it unasked.
  return request.temperature === 1 && topP < 1 ? { topP } : { temperature };
}

/** OpenAI's scale ends at 2 and this one at 1; what lies above is as free as it gets here. */
function temperatureOf(request: ChatRequest, model: BedrockModel): number | undefined {
  const temperature = request.temperature ?? undefined;
  if (temperature === undefined) return undefined;
  if (model.capabilities.temperature) return Math.min(temperature, 1);
  refuseUnlessDefault("temperature", temperature, model);
  return undefined;
}

function topPOf(request: ChatRequest, model: BedrockModel): number | undefined {
  const topP = request.top_p ?? undefined;
  if (topP === undefined || model.capabilities.topP) return topP;
  refuseUnlessDefault("top_p", topP, model);
  return undefined;
}

function refuseUnlessDefault(field: string, value: number, { settings }: BedrockModel): void {
  if (value === 1 || settings.dropUnsupported) return;
  throw unsupported(field, `This model does not take ${field}. Leave it out or send 1.`);
}

/**
 * Where the answer is to end, for the model or, where it takes none, for who reads its answer.
 * Sequences of white space alone are refused, and would stop most answers at once.
 */
export function stopSequencesOf(request: ChatRequest): readonly string[] {
  const stop = request.stop ?? [];
  return (typeof stop === "string" ? [stop] : stop).filter((text) => !isBlank(text));
}
