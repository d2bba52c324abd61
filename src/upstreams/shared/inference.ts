import { type Conversation, fieldOf } from "../../domain/chat/conversation.ts";
import { type Adjustments, isBlank } from "./adjustments.ts";
import { unsupported } from "../../domain/errors/upstream-failure.ts";

/** What these fields of a request depend on. */
export interface InferenceModel {
  readonly capabilities: {
    readonly maxOutputTokens?: number | undefined;
    readonly temperature: boolean;
    readonly topP: boolean;
    readonly topPWithTemperature: boolean;
    readonly stop: boolean;
  };
  /** The longest answer by the operator's setting. */
  readonly statedOutputTokens: number | undefined;
  readonly settings: { readonly defaultOutputTokens?: number | undefined };
}

export interface InferenceConfig {
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly stopSequences?: readonly string[];
}

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
  model: InferenceModel,
  adjustments: Adjustments,
): number {
  const { capabilities, settings } = model;
  const most = capabilities.maxOutputTokens ?? Number.POSITIVE_INFINITY;
  const [cap] = request.caps;
  if (cap === undefined) {
    if (request.ownCap !== undefined) return Math.min(request.ownCap, most);
    const usual = settings.defaultOutputTokens ?? capabilities.maxOutputTokens ?? usualMaxTokens;
    return Math.min(usual, most);
  }
  const { field, tokens: asked, isDemanded } = cap;
  if (asked < 1) throw unsupported(field, `${field}: this model writes at least one token.`);
  if (isDemanded === true && asked > most) {
    adjustments.sendAs(field, most);
    return most;
  }
  const { statedOutputTokens: stated } = model;
  if (stated === undefined || asked <= stated) return asked;
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
  model: InferenceModel,
  { maxTokens, isThinking, adjustments }: InferencePlan,
): InferenceConfig {
  const { sent: stopSequences } = stopsOf(request, model);
  const sampling = samplingOf(request, model, adjustments);
  if (isThinking) reportDroppedSampling(request, sampling, adjustments);
  return {
    ...(maxTokens !== undefined && { maxTokens }),
    ...(!isThinking && sampling),
    ...(stopSequences.length > 0 && { stopSequences }),
  };
}

type Sampling = Pick<InferenceConfig, "temperature" | "topP">;

function samplingOf(
  request: Conversation,
  model: InferenceModel,
  adjustments: Adjustments,
): Sampling {
  const { capabilities } = model;
  const asked = supported("temperature", request, {
    isSupported: capabilities.temperature,
    adjustments,
  });
  // OpenAI's scale ends at 2 and this one at 1, so 1 is the largest value sent.
  if (asked !== undefined && asked > 1) {
    adjustments.sendAs(fieldOf(request, "temperature"), 1);
  }
  const temperature = asked === undefined ? undefined : Math.min(asked, 1);
  const topP = supported("topP", request, { isSupported: capabilities.topP, adjustments });
  if (temperature === undefined) return topP === undefined ? {} : { topP };
  if (topP === undefined) return { temperature };
  if (capabilities.topPWithTemperature) return { temperature, topP };
  // One of the two must be dropped. OpenAI's default of 1 has no effect, and clients send it.
  if (request.options.temperature === 1 && topP < 1) return { topP };
  if (topP < 1) adjustments.sendAs(fieldOf(request, "topP"), "dropped");
  return { temperature };
}

/** The caller's value, if the model supports the field. A value of 1 has no effect. */
function supported(
  option: "temperature" | "topP",
  request: Conversation,
  {
    isSupported,
    adjustments,
  }: { readonly isSupported: boolean; readonly adjustments: Adjustments },
): number | undefined {
  const value = request.options[option];
  if (value === undefined || isSupported) return value;
  if (value === 1) return undefined;
  const field = fieldOf(request, option);
  adjustments.dropOrRefuse(field, `This model does not support ${field}. Omit it or send 1.`);
  return undefined;
}

/** A model that thinks does not accept sampling settings. A value of 1 has no effect. */
function reportDroppedSampling(
  request: Conversation,
  sampling: Sampling,
  adjustments: Adjustments,
): void {
  for (const option of ["temperature", "topP"] as const) {
    if ((sampling[option] ?? 1) < 1) adjustments.sendAs(fieldOf(request, option), "dropped");
  }
}

/** The stop sequences of an answer. */
export interface Stops {
  /** Those that are sent to the model. */
  readonly sent: readonly string[];
  /** Those that the gateway finds in the text itself. */
  readonly kept: readonly string[];
}

/** Some models refuse sequences that consist only of white space. */
export function stopsOf(request: Conversation, { capabilities }: InferenceModel): Stops {
  const all = (request.options.stop ?? []).filter((text) => text !== "");
  if (!capabilities.stop) return { sent: [], kept: all };
  return { sent: all.filter((text) => !isBlank(text)), kept: all.filter(isBlank) };
}
