import type { AdjustedFields, ChatRequest } from "../../../domain/chat/chat.ts";
import { numberOf } from "../../shared/json-fields.ts";
import { Adjustments, checkUnsupported, mergeFields, unsupported } from "../encode/adjustments.ts";
import { answerContextOf, type AnswerContext } from "../encode/answer-context.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import type { ContentBlock, SystemBlock } from "../encode/converse-body.ts";
import { encodeContent, serviceTierOf } from "../encode/encode-converse.ts";
import { encodeInference, maxTokensOf } from "../encode/encode-inference.ts";
import type { ImportedWire } from "../models/model-families.ts";

export interface EncodedInvoke {
  readonly body: string;
  /** Headers for settings that Converse has in its body. */
  readonly headers: Readonly<Record<string, string>>;
  readonly context: AnswerContext;
  readonly adjusted: AdjustedFields;
}

/**
 * The request of `POST /model/{id}/invoke`, or of `/invoke-with-response-stream`, to an imported
 * model: one prompt, written by the model's own template. Throws `UpstreamFailure` `unsupported` or
 * `invalid-request` that name the caller's field.
 */
export function encodeInvoke(
  request: ChatRequest,
  model: BedrockModel,
  wire: ImportedWire,
): EncodedInvoke {
  const adjustments = new Adjustments(model.settings);
  checkUnsupported(request, adjustments);
  const { messages, system = [] } = encodeContent(request, model, adjustments);
  const prompt = wire.prompt({
    system: textOf(system),
    turns: messages.map(({ role, content }) => ({ role, text: textOf(content) })),
  });
  const { maxTokens, temperature, topP, stopSequences } = encodeInference(request, model, {
    maxTokens: maxTokensOf(request, model, adjustments),
    isThinking: false,
    adjustments,
  });
  const fields = {
    [wire.capField]: maxTokens,
    temperature,
    top_p: topP,
    top_k: model.capabilities.topK ? numberOf(request["top_k"]) : undefined,
    stop: stopSequences,
  };
  const body = { ...mergeFields(fields, model.settings.additionalFields), prompt };
  return {
    body: JSON.stringify(body),
    headers: operatorHeaders(request, model),
    context: answerContextOf(request, model),
    adjusted: adjustments.fields,
  };
}

function textOf(blocks: readonly (ContentBlock | SystemBlock)[]): string {
  const texts = blocks.map((block) => {
    if ("text" in block) return block.text;
    throw unsupported("messages", "This model accepts only text. Remove other content.");
  });
  return texts.join("\n\n");
}

/** Names as in the SDK's model of the operation. */
function operatorHeaders(
  request: ChatRequest,
  { settings }: BedrockModel,
): Readonly<Record<string, string>> {
  const { guardrail, latency, requestMetadata } = settings;
  const tier = serviceTierOf(request, settings);
  return {
    ...(guardrail !== undefined && {
      "x-amzn-bedrock-guardrailidentifier": guardrail.identifier,
      "x-amzn-bedrock-guardrailversion": guardrail.version,
      "x-amzn-bedrock-trace": guardrail.trace.toUpperCase(),
    }),
    ...(latency !== undefined && { "x-amzn-bedrock-performanceconfig-latency": latency }),
    ...(tier !== undefined && { "x-amzn-bedrock-service-tier": tier }),
    ...(Object.keys(requestMetadata).length > 0 && {
      "x-amzn-bedrock-request-metadata": asciiJson(requestMetadata),
    }),
  };
}

/** Header values are ASCII, in which JSON can express every text. */
function asciiJson(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
