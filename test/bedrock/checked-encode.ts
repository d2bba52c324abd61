import type { AdjustedFields } from "../../src/domain/chat/answer.ts";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import type { AnswerContext } from "../../src/upstreams/shared/answers/answer-context.ts";
import {
  bedrockModelOf,
  type BedrockModel,
} from "../../src/upstreams/bedrock/models/bedrock-model.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import { encodeCountTokens } from "../../src/upstreams/bedrock/count-tokens.ts";
import { encodeConverse } from "../../src/upstreams/bedrock/encode/encode-converse.ts";
import {
  defaultModelSettings,
  type BedrockModelSettings,
} from "../../src/upstreams/bedrock/settings.ts";
import { brokenRule } from "./conversation-rules.ts";
import {
  converseRequest,
  converseStreamRequest,
  countTokensRequest,
  type ConverseRequest,
} from "./request-shape.ts";

export interface CheckedBody {
  readonly body: ConverseRequest;
  readonly context: AnswerContext;
  readonly adjusted: AdjustedFields;
}

/** A chat body, of which a test names only what it is about. */
export function chatOf(body: object): Conversation {
  return readChatRequest({ model: "m", messages: [{ role: "user", content: "hi" }], ...body });
}

/** A model with settings of which a test names only what it is about. */
export function modelWith(
  identifier: string,
  settings: Partial<BedrockModelSettings> = {},
): BedrockModel {
  return bedrockModelOf(identifier, { ...defaultModelSettings, ...settings });
}

/** Encodes, and throws unless the provider would take the body. */
export function encodeChecked(
  request: Conversation,
  model: BedrockModel,
  isStreamed = false,
): CheckedBody {
  const { body: text, context, adjusted } = encodeConverse(request, model, { isStreamed });
  const shape = isStreamed ? converseStreamRequest : converseRequest;
  const body = shape.parse(JSON.parse(text));
  const broken = brokenRule(body);
  if (broken !== undefined) throw new Error(`The provider would refuse the body: ${broken}`);
  countTokensRequest.parse(JSON.parse(encodeCountTokens(request, model)));
  return { body, context, adjusted };
}
