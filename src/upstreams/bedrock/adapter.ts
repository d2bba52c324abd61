import type { ChatRequest } from "../../domain/chat/chat.ts";
import type { EmbeddingRequest } from "../../domain/chat/embedding.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type {
  AdapterServices,
  ChatCodec,
  EmbeddingCodec,
  UpstreamAdapter,
  UpstreamRequest,
  WholeAnswer,
} from "../adapter.ts";
import { unknownFinishReport, type OnUnknownFinish } from "../shared/finish-words.ts";
import {
  asCountFailure,
  asksForCount,
  decodeCountTokens,
  encodeCountTokens,
} from "./count-tokens.ts";
import { createAuthorizer } from "./credentials/authorize.ts";
import { isEmbeddingFamily } from "./models/bedrock-model.ts";
import { usageIn } from "../shared/usage-in.ts";
import { readUsage } from "./decode/usage.ts";
import { decodeConverse } from "./decode/decode-converse.ts";
import { ConverseStreamDecoder } from "./decode/decode-converse-stream.ts";
import type { EmbeddingWire } from "./embeddings/wire.ts";
import { embeddingWires } from "./embeddings/wires.ts";
import { answersAsWhole, encodeConverse } from "./encode/encode-converse.ts";
import { endpointOf } from "./endpoint.ts";
import { encodeInvoke } from "./invoke/encode-invoke.ts";
import { importedWireOf } from "./invoke/imported-families.ts";
import { asConverse } from "./invoke/native-answer.ts";
import { createReadFailure, requestIdHeader } from "./failures/read-failure.ts";
import type { BedrockSettings } from "./settings.ts";
import { TargetModels, type TargetModel } from "./models/target-models.ts";

/** Amazon Bedrock in one region: Converse for chat, InvokeModel for embeddings and imported models. */
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
      onUnknownFinish: unknownFinishReport(services.onTrouble),
    }),
    embeddings: createEmbeddingCodec(models, endpoint),
    provider: "aws.bedrock",
    traceHeaders: ["traceparent", "tracestate"],
    requestIdHeader,
    authorize: (request, ending) => authorizer.authorize(request, ending),
    whyNoCredential: () => authorizer.whyNoCredential(),
    readFailure(answer, request) {
      const details = readFailure(answer);
      authorizer.noteFailure(answer, request, details.kind);
      return asksForCount(request) ? asCountFailure(details) : details;
    },
  };
}

interface ChatCodecOptions {
  readonly models: TargetModels;
  readonly endpoint: string;
  readonly countsTokens: boolean;
  readonly onUnknownFinish: OnUnknownFinish;
}

function createChatCodec(options: ChatCodecOptions): ChatCodec {
  const { models, endpoint, countsTokens, onUnknownFinish } = options;
  const encodeChat = (request: ChatRequest, { model, path }: TargetModel, isStreamed: boolean) => {
    const imported = importedWireOf(model.family);
    if (imported !== undefined) {
      const { body, headers: own, ...rest } = encodeInvoke(request, model, imported);
      const operation = isStreamed ? "invoke-with-response-stream" : "invoke";
      const plain = post(`${endpoint}${path}/${operation}`, body);
      return {
        ...rest,
        request: { ...plain, headers: { ...headers, ...own } },
        read: asConverse,
      };
    }
    const { body, ...rest } = encodeConverse(request, model, { isStreamed });
    const operation = isStreamed ? "converse-stream" : "converse";
    return { ...rest, request: post(`${endpoint}${path}/${operation}`, body), read: asItIs };
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
      const target = models.at(request.model, identifier);
      const { context, read, ...encoded } = encodeChat(request, target, false);
      return {
        ...encoded,
        decode: (answer) => decodeConverse(read(answer), context, onUnknownFinish),
        usageIn: (body) => readUsage(usageIn(body), undefined),
      };
    },
    encodeStream(request, identifier) {
      const target = models.at(request.model, identifier);
      const isAnsweredWhole = answersAsWhole(request, target.model);
      const isStreamed = !isAnsweredWhole;
      const { context, read: asConverse, ...encoded } = encodeChat(request, target, isStreamed);
      return {
        ...encoded,
        isAnsweredWhole,
        newDecoder: (limits) =>
          new ConverseStreamDecoder({ context, onUnknownFinish, asConverse }, limits),
      };
    },
  };
}

function createEmbeddingCodec(models: TargetModels, endpoint: string): EmbeddingCodec {
  return {
    takesTokenIds: false,
    batchLimit: (request, identifier) =>
      embeddingWire(models.at(request.model, identifier), identifier).batchLimit(request),
    takesImages(alias, identifier) {
      const { family } = models.at(alias, identifier).model;
      return isEmbeddingFamily(family) && embeddingWires[family].takesImages;
    },
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

function asItIs(answer: WholeAnswer): WholeAnswer {
  return answer;
}

/** Serialized once: the signed bytes are the sent bytes. */
function post(url: string, body: string): UpstreamRequest {
  return { url, method: "POST", headers, body };
}

const headers = { "content-type": "application/json", "accept-encoding": "identity" };
/** The format of an embedding model's answer depends on `accept`. */
const invokeHeaders = { ...headers, accept: "application/json" };

function embeddingWire({ model }: TargetModel, identifier: string): EmbeddingWire {
  const { family } = model;
  if (isEmbeddingFamily(family)) return embeddingWires[family];
  throw new UpstreamFailure({
    kind: "unknown-model",
    message: `${identifier} is not a known embedding model; set bedrock.family at its target`,
  });
}
