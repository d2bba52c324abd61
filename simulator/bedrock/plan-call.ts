import { type IncomingCall, markOf, type OpenCall, type Plan, type PlanParts } from "../call.ts";
import { type Fault, faultHeader, noFault } from "../faults/fault-modes.ts";
import { outsizedAnswer } from "../faults/bodies.ts";
import type { Reply } from "../reply.ts";
import { isRecord, type JsonRecord, parseJson } from "../json.ts";
import { BedrockError, bedrockRefusal, errorReply, invalid, LateRefusal } from "./errors.ts";
import { answerEvents, bodyReply, converseReply, countHeader } from "./converse-reply.ts";
import type { CapabilityRow } from "./capabilities.ts";
import { converseStreamReply, refusingStreamReply } from "./stream-reply.ts";
import { countInputTokens, readConverseRequest } from "./read-request.ts";
import { verifySignature } from "./credentials.ts";
import {
  type EmbeddingResult,
  readCohereEmbedding,
  readNovaEmbedding,
  readTitanEmbedding,
  readTitanEmbeddingV1,
  readTitanImageEmbedding,
} from "./embeddings.ts";
import { texts } from "../faults/bedrock-modes.ts";

/** Plans a call of Bedrock's wire; a refusal is a reply too. */
export async function planBedrockCall(
  route: BedrockRoute,
  incoming: IncomingCall,
  parts: PlanParts,
): Promise<Plan> {
  const plan = await answered(route, incoming, parts);
  // The caller's request id is the call's id in the truth log.
  const headers = { ...plan.reply.headers, "x-amzn-requestid": incoming.call.id };
  return { ...plan, reply: { ...plan.reply, headers } };
}

async function answered(
  route: BedrockRoute,
  { request, call }: IncomingCall,
  parts: PlanParts,
): Promise<Plan> {
  call.update({ model: route.model });
  try {
    const body = await readVerified({ request, call }, parts);
    const fault = parts.faults.choose(request.headers.get(faultHeader), route.model);
    if (fault === undefined) throw invalid(`No such fault: ${request.headers.get(faultHeader)}`);
    call.update({ fault: fault.mode });
    const refusal = bedrockRefusal(fault, route.model);
    if (refusal instanceof BedrockError) throw refusal;
    return {
      fault,
      reply: refusal ?? replyTo(route, { call, body, fault }, parts),
    };
  } catch (error) {
    if (!(error instanceof BedrockError)) throw error;
    const isInStream = error instanceof LateRefusal && route.operation === "converse-stream";
    const reply = isInStream ? refusingStreamReply(error) : errorReply(error);
    return { fault: noFault, reply };
  }
}

async function readVerified(
  { request, call }: IncomingCall,
  { bedrock, clock }: PlanParts,
): Promise<JsonRecord> {
  const bytes = new Uint8Array(await request.arrayBuffer());
  const { credentials, region } = bedrock;
  const { path, query } = wirePath(request.url);
  const { method, headers } = request;
  const verifier = { credentials, region, now: clock.now() };
  verifySignature({ method, path, query, headers, body: bytes }, verifier);
  const text = new TextDecoder().decode(bytes);
  call.update({ mark: markOf(text) });
  let body: unknown;
  try {
    body = parseJson(text);
  } catch {
    throw new BedrockError("SerializationException", "The body is not valid JSON.");
  }
  if (isRecord(body)) return body;
  throw new BedrockError("SerializationException", "Start of structure expected.");
}

/** The path and query of a URL as received; `URL` would normalise them. */
export function wirePath(url: string): { readonly path: string; readonly query: string } {
  const [, path = "/", query = ""] = /^\w+:\/\/[^/?#]*([^?#]*)(?:\?([^#]*))?/.exec(url) ?? [];
  return { path, query };
}

interface Reading {
  readonly call: OpenCall;
  readonly body: JsonRecord;
  readonly fault: Fault;
}

function replyTo(route: BedrockRoute, reading: Reading, parts: PlanParts): Reply {
  const { models } = parts.bedrock;
  const { operation, model } = route;
  const { call, body, fault } = reading;
  switch (operation) {
    case "converse":
    case "converse-stream":
      return chatReply(route, reading, parts);
    case "invoke":
    case "invoke-with-response-stream": {
      const row = models.resolve(model);
      if (operation !== "invoke") throw invalid("The model is unsupported for streaming");
      const read = readInvocation(body, row);
      call.update({ promptTokens: read.promptTokens });
      admit(model, read.promptTokens, parts);
      return invocationReply(read, fault);
    }
    case "count-tokens": {
      const inputTokens = countInputTokens(body, model, models.resolveForCounting(model));
      call.update({ promptTokens: inputTokens });
      return bodyReply({ inputTokens }, { fault, tokens: 0 });
    }
  }
}

function chatReply(route: BedrockRoute, reading: Reading, parts: PlanParts): Reply {
  const { bedrock, clock, contextWindow } = parts;
  const { call, body, fault } = reading;
  const { model } = route;
  const startedAtMs = clock.monotonic();
  const row = bedrock.models.resolve(model);
  const isStreamed = route.operation === "converse-stream";
  const { cache } = bedrock;
  const read = readConverseRequest({ body, model, row, isStreamed, contextWindow, cache });
  call.update({ promptTokens: read.promptTokens, isStreamed });
  const inputTokens = read.promptTokens - (read.cache?.readTokens ?? 0);
  admit(model, inputTokens + read.maxOutputTokens, parts);
  const answer = outsizedAnswer(fault) ?? answerEvents(read);
  if (isStreamed) return converseStreamReply(read, answer, { fault, clock });
  return converseReply(read, answer, { fault, latencyMs: clock.monotonic() - startedAtMs });
}

/** Throws when the quota has no room. */
function admit(model: string, tokens: number, { bedrock: { quota } }: PlanParts): void {
  const refusal = quota.refusal(model, tokens);
  if (refusal !== undefined) throw refusal;
}

type Api = CapabilityRow["api"];

const embeddings: Readonly<Partial<Record<Api, (body: JsonRecord) => EmbeddingResult>>> = {
  "titan-embed": readTitanEmbedding,
  "titan-embed-v1": readTitanEmbeddingV1,
  "titan-embed-image": readTitanImageEmbedding,
  "nova-embed": readNovaEmbedding,
  "cohere-embed-v3": (body) => readCohereEmbedding(body, 3),
  "cohere-embed-v4": (body) => readCohereEmbedding(body, 4),
  everything: (body) =>
    body["texts"] === undefined ? readTitanEmbedding(body) : readCohereEmbedding(body, 3),
};

/** Reads InvokeModel's body, which differs by model. Throws `BedrockError`. */
function readInvocation(body: JsonRecord, { api }: CapabilityRow): EmbeddingResult {
  const read = embeddings[api];
  if (read !== undefined) return read(body);
  throw invalid("The simulator serves chat models through Converse, not through InvokeModel.");
}

/** Only the header has the count for every model. */
export function invocationReply({ answer, promptTokens }: EmbeddingResult, fault: Fault): Reply {
  const headers = countHeader(promptTokens, fault);
  return bodyReply(answer, { fault, tokens: 0, headers });
}

/** The operations, with their kinds in the truth log. */
const operations = {
  converse: "chat",
  "converse-stream": "chat",
  invoke: "embeddings",
  "invoke-with-response-stream": "embeddings",
  "count-tokens": "count-tokens",
} as const;
type Operation = keyof typeof operations;

interface BedrockRoute {
  readonly operation: Operation;
  readonly kind: (typeof operations)[Operation];
  /** Decoded. */
  readonly model: string;
}

/** All paths of this wire begin like this, and none of OpenAI's do. */
export function isBedrockPath(path: string): boolean {
  return path.startsWith("/model/");
}

/**
 * Reads the path as received: the model's id is one segment, in which slashes are encoded; the
 * refusal for every other path.
 */
export function bedrockRoute(method: string, path: string): BedrockRoute | BedrockError {
  const [, , id = "", operation = "", ...rest] = path.split("/");
  const model = decoded(id);
  if (method !== "POST" || !isOperation(operation) || rest.length > 0 || !model) {
    return new BedrockError("UnknownOperationException", texts.unknownOperation);
  }
  return { operation, kind: operations[operation], model };
}

function isOperation(name: string): name is Operation {
  return Object.hasOwn(operations, name);
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
