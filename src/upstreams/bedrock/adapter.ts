import type { ChatRequest } from "../../domain/chat.ts";
import type { EmbeddingRequest } from "../../domain/embedding.ts";
import { UpstreamFailure } from "../../domain/upstream-failure.ts";
import type {
  AdapterServices,
  ChatCodec,
  EmbeddingCodec,
  UpstreamAdapter,
  UpstreamRequest,
} from "../adapter.ts";
import { decodeCountTokens, encodeCountTokens } from "./count-tokens.ts";
import { createAuthorizer } from "./credentials/authorize.ts";
import { isEmbeddingFamily } from "./bedrock-model.ts";
import { decodeConverse } from "./decode-converse.ts";
import { ConverseStreamDecoder } from "./decode-converse-stream.ts";
import { embeddingWires, type EmbeddingWire } from "./embeddings.ts";
import { answersAsWhole, encodeConverse } from "./encode-converse.ts";
import { endpointOf } from "./endpoint.ts";
import { createReadFailure, requestIdHeader } from "./read-failure.ts";
import { WholeAnswerReplay } from "./replay-whole-answer.ts";
import type { BedrockSettings } from "./settings.ts";
import { unknownStopReasonReport, type OnUnknownStopReason } from "./stop-reason.ts";
import { TargetModels, type TargetModel } from "./target-models.ts";

/** Amazon Bedrock in one region: Converse for chat, InvokeModel for embeddings. */
export function createBedrockAdapter(
  settings: BedrockSettings,
  services: AdapterServices,
): UpstreamAdapter {
  const models = new TargetModels(settings.models);
  const endpoint = endpointOf(settings);
  const authorizer = createAuthorizer(settings, services);
  const readFailure = createReadFailure(services.clock);
  return {
    chat: createChatCodec({
      models,
      endpoint,
      countsTokens: settings.countsTokens,
      onUnknownStopReason: unknownStopReasonReport(services.onTrouble),
    }),
    embeddings: createEmbeddingCodec(models, endpoint),
    requestIdHeader,
    authorize: (request, signal) => authorizer.authorize(request, signal),
    readFailure(answer, request) {
      const details = readFailure(answer);
      authorizer.noteFailure(answer, request, details.kind);
      return details;
    },
  };
}

interface ChatCodecOptions {
  readonly models: TargetModels;
  readonly endpoint: string;
  readonly countsTokens: boolean;
  readonly onUnknownStopReason: OnUnknownStopReason;
}

function createChatCodec(options: ChatCodecOptions): ChatCodec {
  const { models, endpoint, countsTokens, onUnknownStopReason } = options;
  const encodeWhole = (request: ChatRequest, { model, path }: TargetModel) => {
    const { body, context, adjusted } = encodeConverse(request, model, { isStreamed: false });
    return { request: post(`${endpoint}${path}/converse`, body), context, adjusted };
  };
  return {
    ...(countsTokens && {
      countTokens(request: ChatRequest, identifier: string) {
        const { model, countPath } = models.at(request.model, identifier);
        if (countPath === undefined) return undefined;
        const body = encodeCountTokens(request, model);
        return { request: post(`${endpoint}${countPath}`, body), decode: decodeCountTokens };
      },
    }),
    takesChoiceCount: false,
    takesImageUrls: false,
    encode(request, identifier) {
      const { context, ...encoded } = encodeWhole(request, models.at(request.model, identifier));
      return {
        ...encoded,
        decode: (answer) => decodeConverse(answer, context, onUnknownStopReason),
      };
    },
    encodeStream(request, identifier) {
      const target = models.at(request.model, identifier);
      if (answersAsWhole(request, target.model)) {
        const { context, ...encoded } = encodeWhole(request, target);
        return {
          ...encoded,
          newDecoder: () => new WholeAnswerReplay(context, onUnknownStopReason),
        };
      }
      const { body, context, adjusted } = encodeConverse(request, target.model, {
        isStreamed: true,
      });
      return {
        adjusted,
        request: post(`${endpoint}${target.path}/converse-stream`, body),
        newDecoder: (limits) => new ConverseStreamDecoder(context, onUnknownStopReason, limits),
      };
    },
  };
}

function createEmbeddingCodec(models: TargetModels, endpoint: string): EmbeddingCodec {
  return {
    takesTokenIds: false,
    batchLimit: ({ model: alias }, identifier) =>
      embeddingWire(models.at(alias, identifier), identifier).batchLimit,
    encode(request: EmbeddingRequest, identifier) {
      const target = models.at(request.model, identifier);
      const { settings } = target.model;
      const wire = embeddingWire(target, identifier);
      return {
        request: {
          ...post(`${endpoint}${target.path}/invoke`, wire.encode(request, settings)),
          headers: invokeHeaders,
        },
        decode: (answer) => wire.decode(answer),
      };
    },
  };
}

/** Serialized once: the bytes that are signed are the bytes that are sent. */
function post(url: string, body: string): UpstreamRequest {
  return { url, method: "POST", headers, body };
}

const headers = { "content-type": "application/json", "accept-encoding": "identity" };
/** Embedding models choose the form of their answer by it. */
const invokeHeaders = { ...headers, accept: "application/json" };

function embeddingWire({ model }: TargetModel, identifier: string): EmbeddingWire {
  const { family } = model;
  if (isEmbeddingFamily(family)) return embeddingWires[family];
  throw new UpstreamFailure({
    kind: "unknown-model",
    message: `${identifier} is not a known embedding model; set bedrock.family at its target`,
  });
}
