import type { Conversation } from "../../domain/chat/conversation.ts";
import type { AdapterServices, UpstreamAdapter, UpstreamRequest } from "../adapter.ts";
import { byTarget } from "../shared/by-target.ts";
import { decodeCount } from "../shared/answer-codec.ts";
import { unknownFinishReport } from "../shared/finish-words.ts";
import { encodeMessages, encodeMessagesCount } from "../shared/messages/encode-messages.ts";
import { createMessagesCodec } from "../shared/messages/messages-codec.ts";
import { createReadFailure } from "../shared/openai/read-failure.ts";
import type { AnthropicSettings } from "./config.ts";
import { modelOf } from "./models.ts";

/** The Messages API of Anthropic, and of others that serve it with an API key. */
export function createAnthropicAdapter(
  settings: AnthropicSettings,
  { clock, onTrouble }: AdapterServices,
): UpstreamAdapter {
  const forwarded = new Set(settings.forwardFields);
  const api = { forwarded, strictTools: true, endUsers: true };
  const modelAt = byTarget(settings.models, modelOf);
  const post = (request: Conversation, path: string, body: string): UpstreamRequest => ({
    url: `${settings.baseUrl}/v1/messages${path}`,
    method: "POST",
    headers: { ...headers, ...betaHeader(request, settings) },
    body,
  });
  const ask = (request: Conversation, identifier: string) => {
    const model = modelAt(request.model, identifier);
    const { body, ...rest } = encodeMessages(request, model, api);
    return { ...rest, request: post(request, "", body) };
  };
  return {
    chat: {
      ...(settings.countTokens && {
        countTokens(request: Conversation, identifier: string) {
          const model = modelAt(request.model, identifier);
          const body = encodeMessagesCount(request, model, api);
          return {
            request: post(request, "/count_tokens", body),
            decode: (answer) => decodeCount(answer, "input_tokens"),
          };
        },
      }),
      // The newest models recognise their thoughts in one account only.
      origin: ({ model, upstream }) => ({
        wire: "messages",
        model,
        account: `${upstream} ${settings.baseUrl}`,
        provesText: true,
      }),
      takesChoiceCount: false,
      takesImageUrls: true,
      ...createMessagesCodec(ask, unknownFinishReport(onTrouble)),
    },
    provider: "anthropic",
    requestIdHeader: "request-id",
    authorize: (request) => ({
      ...request,
      headers: { ...request.headers, "x-api-key": settings.apiKey.reveal() },
    }),
    readFailure: createReadFailure(clock),
  };
}

/**
 * The newest version refuses sampling settings that callers may still send; this one takes them
 * where the model does.
 */
const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "accept-encoding": "identity",
  "anthropic-version": "2023-06-01",
};

/** The operator's betas, and those of the caller's that the operator lets through. */
function betaHeader(
  { betas: asked = [] }: Conversation,
  { betas, forwardBetas }: AnthropicSettings,
): Readonly<Record<string, string>> {
  const sent = new Set([...betas, ...asked.filter((beta) => forwardBetas.includes(beta))]);
  return sent.size === 0 ? {} : { "anthropic-beta": [...sent].join(",") };
}
