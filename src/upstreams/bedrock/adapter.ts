import type { Conversation } from "../../domain/chat/conversation.ts";
import type { EmbeddingRequest } from "../../domain/chat/embedding.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import type {
  AdapterServices,
  ChatCodec,
  EmbeddingCodec,
  FailedAnswer,
  NamedTarget,
  UpstreamAdapter,
  ValueOrigin,
  UpstreamRequest,
} from "../adapter.ts";
import { unknownFinishReport } from "../shared/finish-words.ts";
import { asCountFailure, asksForCount, countPathOf, encodeCountTokens } from "./count-tokens.ts";
import { byTarget } from "../shared/by-target.ts";
import { createAnswerCodec, decodeCount } from "../shared/answer-codec.ts";
import { createReadFailure as createReadNativeFailure } from "../shared/openai/read-failure.ts";
import type { Clock } from "../../domain/clock.ts";
import { createAuthorizer } from "./credentials/authorize.ts";
import { type BedrockModel, bedrockModelOf } from "./models/bedrock-model.ts";
import { foundationModelOf, isEmbeddingFamily, ModelFamilies } from "./models/facts.ts";
import { parseObject } from "../../domain/json-fields.ts";
import { ConverseWire } from "./decode/decode-converse.ts";
import type { EmbeddingWire } from "./embeddings/wire.ts";
import { embeddingWires } from "./embeddings/families.ts";
import { answersAsWhole, encodeConverse } from "./encode/encode-converse.ts";
import { encodePathSegment, endpointOf, isNativePath } from "./endpoint.ts";
import { messagesCountRequest, nativeCodecs } from "./native-codecs.ts";
import { createReadFailure, requestIdHeader } from "./read-failure.ts";
import type { BedrockModelSettings, BedrockSettings } from "./settings.ts";

/** Amazon Bedrock in one region: Converse or a native API for chat, InvokeModel for embeddings. */
export function createBedrockAdapter(
  settings: BedrockSettings,
  services: AdapterServices,
): UpstreamAdapter {
  const models = modelsOf(settings);
  const endpoint = endpointOf(settings);
  const authorizer = createAuthorizer(settings, services);
  const readFailure = createReadFailures(services.clock);
  return {
    chat: createChatCodec(settings, services, { models, endpoint }),
    embeddings: createEmbeddingCodec(models, endpoint),
    provider: "aws.bedrock",
    traceHeaders: ["traceparent", "tracestate"],
    requestIdHeader,
    authorize: (request, ending) => authorizer.authorize(request, ending),
    whyNoCredential: () => authorizer.whyNoCredential(),
    readFailure(answer, request) {
      const details = readFailure(answer, request);
      authorizer.noteFailure(answer, request, details.kind);
      return asksForCount(request) ? asCountFailure(details) : details;
    },
  };
}

/** The service's own refusals come from every API, the model's in the form of its own. */
function createReadFailures(
  clock: Clock,
): (answer: FailedAnswer, request: UpstreamRequest) => UpstreamFailureDetails {
  const ofService = createReadFailure(clock);
  const ofNative = createReadNativeFailure(clock);
  return (answer, { url }) => {
    const isModels = isNativePath(url) && answer.headers.get("x-amzn-errortype") === null;
    const error = isModels ? parseObject(answer.body)?.["error"] : undefined;
    return error === undefined ? ofService(answer) : ofNative(answer);
  };
}

/**
 * A foundation model is the same in all its profiles and regions; behind an ARN, the ARN identifies
 * it. The account is that of the assumed role, or else the upstream of the file stands for it.
 */
function originOf(
  { credentials, region }: BedrockSettings,
  models: Models,
  { alias, model, upstream }: NamedTarget,
): ValueOrigin {
  const role = credentials.source === "bearer" ? undefined : credentials.assumedRole?.roleArn;
  return {
    wire: models(alias, model).model.settings.api,
    model: foundationModelOf(model) ?? model,
    account: role?.split(":")[4] ?? upstream.replace(`@${region}`, ""),
    provesText: true,
  };
}

function createChatCodec(
  settings: BedrockSettings,
  { newToolCallId, onTrouble }: AdapterServices,
  { models, endpoint }: { readonly models: Models; readonly endpoint: string },
): ChatCodec {
  const { service, countsTokens } = settings;
  const onUnknownFinish = unknownFinishReport(onTrouble);
  const converse = createAnswerCodec((request, identifier) => {
    const { model, path } = models(request.model, identifier);
    const isAnsweredWhole = request.isStreamed && answersAsWhole(request, model);
    const isStreamed = request.isStreamed && !isAnsweredWhole;
    const { body, context, adjusted } = encodeConverse(request, model, { isStreamed });
    const url = `${endpoint}${path}/${isStreamed ? "converse-stream" : "converse"}`;
    const wire = new ConverseWire(context, onUnknownFinish);
    return { request: post(url, body), adjusted, isAnsweredWhole, wire };
  });
  const native = nativeCodecs({
    endpoint,
    service,
    modelOf: (alias, identifier) => models(alias, identifier).model,
    services: { newToolCallId, onUnknownFinish },
  });
  const codecFor = (request: Conversation, identifier: string): typeof converse =>
    native[models(request.model, identifier).model.settings.api] ?? converse;
  return {
    ...(countsTokens && {
      countTokens(request: Conversation, identifier: string) {
        const { model, countPath } = models(request.model, identifier);
        if (service === "mantle") {
          if (model.settings.api !== "messages") return undefined;
          const counted = messagesCountRequest(endpoint, request, model);
          return { request: counted, decode: (answer) => decodeCount(answer, "input_tokens") };
        }
        if (countPath === undefined) return undefined;
        const body = encodeCountTokens(request, model);
        return {
          request: post(`${endpoint}${countPath}`, body),
          decode: (answer) => decodeCount(answer, "inputTokens"),
        };
      },
    }),
    origin: (target) => originOf(settings, models, target),
    takesChoiceCount: false,
    takesImageUrls: false,
    encode: (request, identifier) => codecFor(request, identifier).encode(request, identifier),
    encodeStream: (request, identifier) =>
      codecFor(request, identifier).encodeStream(request, identifier),
  };
}

function createEmbeddingCodec(models: Models, endpoint: string): EmbeddingCodec {
  return {
    takesTokenIds: false,
    batchLimit: (request, identifier) =>
      embeddingWire(models(request.model, identifier), identifier).batchLimit(request),
    takesImages(alias, identifier) {
      const { family } = models(alias, identifier).model;
      return isEmbeddingFamily(family) && embeddingWires[family].takesImages;
    },
    encode(request: EmbeddingRequest, identifier) {
      const target = models(request.model, identifier);
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

/** One model at one target, with everything that is the same for all calls. */
interface TargetModel {
  readonly model: BedrockModel;
  /** `/model/<identifier>`, the identifier as one segment. */
  readonly path: string;
  /** The path for counting tokens; undefined when the model does not support that. */
  readonly countPath: string | undefined;
}

type Models = (alias: string, identifier: string) => TargetModel;

function modelsOf(settings: BedrockSettings): Models {
  const families = new ModelFamilies(settings.families);
  return byTarget(settings.models, (identifier, own?: BedrockModelSettings) => {
    const model = bedrockModelOf(identifier, own, families);
    const path = `/model/${encodePathSegment(identifier)}`;
    return { model, path, countPath: countPathOf(model) };
  });
}
