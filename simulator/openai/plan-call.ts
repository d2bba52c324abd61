import { type IncomingCall, markOf, type OpenCall, type Plan, type PlanParts } from "../call.ts";
import { verifyText } from "../bedrock/credentials.ts";
import { BedrockError, errorReply as bedrockErrorReply } from "../bedrock/errors.ts";
import { type Fault, faultHeader, noFault } from "../faults/fault-modes.ts";
import { jsonReply, type Reply } from "../reply.ts";
import { isRecord, type JsonRecord, parseJson, stringOf } from "../json.ts";
import { chatReply } from "./answers.ts";
import { embeddingsReply, readEmbeddingRequest } from "./embeddings.ts";
import { responsesReply } from "../responses/answers.ts";
import { readResponsesRequest } from "../responses/request.ts";
import { readChatRequest } from "./request.ts";
import { refusalReply, WireError, wrongKey, wrongType } from "./errors.ts";
import type { ServerBehaviour } from "./profiles.ts";
import { asRead, checkInputs, errorOfServer, serverOf } from "./servers.ts";

interface PostRoute<Kind> {
  readonly kind: Kind;
  /** The route is Bedrock's, which checks credentials in its own way. */
  readonly isBedrocks?: boolean;
}

type KnownRoute =
  | PostRoute<"chat" | "responses" | "embeddings">
  | { readonly kind: "models"; readonly model: string | undefined };

type OpenAiRoute = KnownRoute | PostRoute<"unknown">;

/** Undefined if this wire has no such path. `path` comes without `/v1`. */
export function openAiRoute(method: string, path: string): OpenAiRoute | undefined {
  if (method === "GET" && path === "/models") return { kind: "models", model: undefined };
  if (method === "GET" && path.startsWith("/models/")) {
    return { kind: "models", model: decodeURIComponent(path.slice("/models/".length)) };
  }
  if (method !== "POST") return undefined;
  if (path.startsWith("/openai/v1/")) {
    const known = openAiRoute(method, path.slice("/openai/v1".length));
    const kind = known?.kind === "chat" || known?.kind === "responses" ? known.kind : "unknown";
    return { kind, isBedrocks: true };
  }
  if (path === "/chat/completions") return { kind: "chat" };
  if (path === "/responses") return { kind: "responses" };
  return path === "/embeddings" ? { kind: "embeddings" } : undefined;
}

/** Throws `WireError` if OpenAI would refuse the request. */
export async function planOpenAiCall(
  route: OpenAiRoute,
  { request, call }: IncomingCall,
  parts: PlanParts,
): Promise<Plan> {
  const isBedrocks = route.kind !== "models" && route.isBedrocks === true;
  const text = route.kind === "models" ? "{}" : await request.text();
  try {
    if (isBedrocks) verifyText(request, text, { ...parts.bedrock, now: parts.clock.now() });
    else checkKey(request, parts.apiKeys);
  } catch (error) {
    if (error instanceof BedrockError) return { fault: noFault, reply: bedrockErrorReply(error) };
    throw error;
  }
  if (route.kind === "unknown") return { fault: noFault, reply: jsonReply(unknownOperation) };
  const body = readBody(text, call);
  const model = stringOf(body["model"]);
  const server = serverOf(model, parts.server);
  const fault = parts.faults.choose(request.headers.get(faultHeader), model);
  if (fault === undefined) {
    const message = `No such fault: ${request.headers.get(faultHeader)}. See sluice simulator --help.`;
    throw new WireError(400, { message, code: "unknown_fault" });
  }
  call.update({ model, fault: fault.mode });
  try {
    const asked = route.kind === "chat" ? asRead(body, server) : body;
    return { fault, reply: replyTo(route, asked, { call, parts, fault, server }) };
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    const status = fault.mode === "error-200" ? 200 : error.status;
    return { fault, reply: { ...errorOfServer(error, server), status } };
  }
}

interface Answering {
  readonly call: OpenCall;
  readonly parts: PlanParts;
  readonly fault: Fault;
  readonly server: ServerBehaviour;
}

function replyTo(
  route: KnownRoute,
  body: JsonRecord,
  { call, parts, fault, server }: Answering,
): Reply {
  const model = stringOf(body["model"]);
  const created = Math.floor(parts.clock.now() / 1000);
  const refusal = refusalReply(fault, model);
  if (refusal !== undefined) return refusal;
  switch (route.kind) {
    case "models":
      return modelsReply(route.model);
    case "embeddings": {
      checkInputs(body["input"], server);
      const read = readEmbeddingRequest(body);
      call.update({ promptTokens: read.promptTokens });
      return embeddingsReply(read, fault);
    }
    case "responses": {
      const read = readResponsesRequest(body, parts);
      call.update({ promptTokens: read.promptTokens, isStreamed: read.isStreamed });
      return responsesReply(read, { id: call.id, created, model }, fault);
    }
    case "chat": {
      const read = readChatRequest(body, parts);
      call.update({ promptTokens: read.promptTokens, isStreamed: read.isStreamed });
      const identity = { id: `chatcmpl-${call.id}`, created, model };
      return chatReply(read, identity, { fault, server });
    }
  }
}

/** Calls may name any model; a list has one. */
function modelsReply(model: string | undefined): Reply {
  const body = {
    id: model ?? "simulator-chat",
    object: "model",
    created: 1_700_000_000,
    owned_by: "sluice",
  };
  const list = { object: "list", data: [body] };
  return jsonReply(JSON.stringify(model === undefined ? list : body));
}

function checkKey(request: Request, apiKeys: ReadonlySet<string> | undefined): void {
  if (apiKeys === undefined) return;
  const header = request.headers.get("authorization") ?? "";
  // Azure's header.
  const own = request.headers.get("api-key") ?? "";
  const key = /^bearer\s+(.*)$/i.exec(header)?.[1]?.trim() ?? own;
  if (!apiKeys.has(key)) throw wrongKey(key);
}

/** Bedrock's runtime has this answer for paths that it does not know. */
const unknownOperation =
  '{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}';

function readBody(text: string, call: OpenCall): JsonRecord {
  call.update({ mark: markOf(text) });
  let body: unknown;
  try {
    body = parseJson(text);
  } catch {
    throw new WireError(400, { message: "We could not parse the JSON body of your request." });
  }
  if (!isRecord(body)) throw wrongType("body", "an object", body);
  return body;
}
