import { markOf } from "../call-mark.ts";
import type { IncomingCall, Plan, PlanParts } from "../call-plan.ts";
import { faultHeader } from "../faults/fault-chooser.ts";
import { noFault, type Fault } from "../faults/fault-mode.ts";
import { outsizedAnswer } from "../faults/outsized-answer.ts";
import type { Reply } from "../frame.ts";
import type { OpenCall } from "../open-call.ts";
import { isRecord, parseJson, type JsonRecord } from "../read-json.ts";
import { bedrockRefusal } from "./exceptions.ts";
import { BedrockError, LateRefusal, errorReply, invalid } from "./bedrock-error.ts";
import type { BedrockRoute } from "./bedrock-route.ts";
import { bodyReply } from "./reply/body-reply.ts";
import type { CapabilityRow } from "./account/capability-row.ts";
import { answerEvents } from "./reply/converse-answer.ts";
import { converseReply } from "./reply/converse-reply.ts";
import { converseStreamReply, refusingStreamReply } from "./reply/stream-reply.ts";
import { countInputTokens } from "./count-tokens.ts";
import { nativeReply, nativeStreamReply } from "./imported/native-reply.ts";
import { readImported } from "./imported/read-imported.ts";
import type { Template } from "./imported/read-template.ts";
import { invocationReply, readInvocation, templateOf } from "./invoke-model.ts";
import { readConverseRequest } from "./request/read-converse-request.ts";
import { verifySignature } from "./account/verify-signature.ts";

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
      reply: refusal ?? replyTo(route, { headers: request.headers, call, body, fault }, parts),
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
  readonly headers: Headers;
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
      const template = templateOf(row, body);
      if (template !== undefined) return importedReply({ route, reading, row, template }, parts);
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

interface ImportedCalled {
  readonly route: BedrockRoute;
  readonly reading: Reading;
  readonly row: CapabilityRow;
  readonly template: Template;
}

function importedReply(called: ImportedCalled, parts: PlanParts): Reply {
  const { route, reading, row, template } = called;
  const { call, body, headers, fault } = reading;
  const { model } = route;
  const isStreamed = route.operation === "invoke-with-response-stream";
  const read = readImported({ body, model, row, template, headers, isStreamed });
  const { promptTokens, maxOutputTokens } = read.request;
  call.update({ kind: "chat", promptTokens, isStreamed });
  admit(model, promptTokens + maxOutputTokens, parts);
  const reply = isStreamed ? nativeStreamReply : nativeReply;
  return reply(read, outsizedAnswer(fault) ?? answerEvents(read.request), fault);
}

/** Throws when the quota has no room. */
function admit(model: string, tokens: number, { bedrock: { quota } }: PlanParts): void {
  const refusal = quota.refusal(model, tokens);
  if (refusal !== undefined) throw refusal;
}
