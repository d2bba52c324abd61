import { collectAnswer } from "../answer/answer.ts";
import { writeAnswer } from "../answer/write-answer.ts";
import { verifySignature } from "../bedrock/credentials.ts";
import { BedrockError, errorReply as bedrockErrorReply } from "../bedrock/errors.ts";
import { wirePath } from "../bedrock/plan-call.ts";
import { type IncomingCall, markOf, type Plan, type PlanParts } from "../call.ts";
import { inflatedUsage, outsizedAnswer, withBodyFault } from "../faults/bodies.ts";
import { type Fault, faultHeader } from "../faults/fault-modes.ts";
import { isRecord, type JsonRecord, listOf, parseJson, recordOf, stringOf } from "../json.ts";
import { type Frame, framesBeforeMiddle, jsonReply, type Reply } from "../reply.ts";
import {
  errorReply,
  errorText,
  invalid,
  MessagesError,
  refusalReply,
  serverError,
} from "./errors.ts";
import { type MessagesRequest, readRequest } from "./request.ts";
import { signatureOf } from "./thoughts.ts";

export interface MessagesRoute {
  readonly kind: "chat" | "count-tokens";
  /** Bedrock's, which checks credentials in its own way. */
  readonly isBedrocks: boolean;
}

/** Undefined if this wire has no such path. `path` comes without `/v1`. */
export function messagesRoute(method: string, path: string): MessagesRoute | undefined {
  if (method !== "POST") return undefined;
  if (path === "/anthropic/v1/messages") return { kind: "chat", isBedrocks: true };
  if (path === "/messages") return { kind: "chat", isBedrocks: false };
  if (path !== "/messages/count_tokens") return undefined;
  return { kind: "count-tokens", isBedrocks: false };
}

export async function planMessagesCall(
  { kind, isBedrocks }: MessagesRoute,
  { request, call }: IncomingCall,
  parts: PlanParts,
): Promise<Plan> {
  const requestId = `req_${call.id}`;
  let fault: Fault = { mode: "ok", argument: undefined };
  try {
    const text = await request.text();
    if (isBedrocks) checkSignature(request, text, parts);
    else checkKey(request, parts.apiKeys);
    if (request.headers.get("anthropic-version") === null) {
      throw invalid("anthropic-version: header is required");
    }
    call.update({ mark: markOf(text) });
    const body = parseJson(text);
    if (!isRecord(body)) throw invalid("the body must be an object");
    const model = stringOf(body["model"]);
    const chosen = parts.faults.choose(request.headers.get(faultHeader), model);
    if (chosen === undefined) throw invalid("No such fault.");
    fault = chosen;
    call.update({ model, fault: fault.mode });
    const refusal = refusalReply(fault, model, requestId);
    if (refusal !== undefined) return { fault, reply: refusal };
    const read = readRequest(body, parts.contextWindow, kind === "count-tokens");
    call.update({ promptTokens: read.promptTokens, isStreamed: read.isStreamed });
    const headers = { "request-id": requestId };
    if (kind === "count-tokens") {
      const counted = JSON.stringify({ input_tokens: read.promptTokens });
      return { fault, reply: jsonReply(counted, { headers }) };
    }
    return { fault, reply: answerReply(read, { id: `msg_${call.id}`, headers, fault }) };
  } catch (error) {
    if (error instanceof BedrockError) return { fault, reply: bedrockErrorReply(error) };
    if (!(error instanceof MessagesError)) throw error;
    return { fault, reply: errorReply(error, requestId) };
  }
}

/** A key of Bedrock is sent as Anthropic's, other credentials sign. */
function checkSignature(request: Request, text: string, { bedrock, clock }: PlanParts): void {
  const headers = new Headers(request.headers);
  const key = headers.get("x-api-key");
  if (key !== null) headers.set("authorization", `Bearer ${key}`);
  const { credentials, region } = bedrock;
  verifySignature(
    { method: "POST", ...wirePath(request.url), headers, body: new TextEncoder().encode(text) },
    { credentials, region, now: clock.now() },
  );
}

function checkKey({ headers }: Request, apiKeys: ReadonlySet<string> | undefined): void {
  const key = headers.get("x-api-key");
  if (key === null || apiKeys?.has(key) === false) {
    throw new MessagesError(401, "authentication_error", "invalid x-api-key");
  }
}

interface Answering {
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fault: Fault;
}

function answerReply(read: MessagesRequest, { id, headers, fault }: Answering): Reply {
  const { body, prompt, isStreamed } = read;
  const answer = collectAnswer(outsizedAnswer(fault) ?? writeAnswer(prompt, 0));
  const { text, calls, refusal, reasoning, finish } = answer;
  const content = [
    ...(reasoning === "" ? [] : [thoughtBlock(body, reasoning)]),
    ...(text + (refusal ?? "") === "" ? [] : [{ type: "text", text: text + (refusal ?? "") }]),
    ...calls.map((call) => ({
      type: "tool_use",
      id: call.id.replace(/^call_/, "toolu_"),
      name: call.name,
      input: parseJson(call.input),
    })),
  ];
  const stop = {
    stop_reason: refusal === undefined ? stopReason(finish) : "refusal",
    stop_sequence: finish.stopSequence ?? null,
  };
  const cached = Math.floor(read.promptTokens / 4);
  const input = {
    input_tokens: read.promptTokens - cached,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
    service_tier: "standard",
  };
  const output = {
    output_tokens: finish.completionTokens,
    output_tokens_details: { thinking_tokens: finish.reasoningTokens },
  };
  const message = { id, type: "message", role: "assistant", model: prompt.model };
  if (!isStreamed) {
    if (fault.mode === "error-event-mid-stream") return errorReply(serverError, id);
    const whole = { ...message, content, ...stop, usage: { ...input, ...output } };
    return withBodyFault(whole, { tokens: finish.completionTokens, fault, headers });
  }
  const start = { ...message, content: [], stop_reason: null, stop_sequence: null };
  const events = eventsOf({
    start: { type: "message_start", message: { ...start, usage: { ...input, output_tokens: 1 } } },
    content,
    delta: { type: "message_delta", delta: stop, usage: output },
  });
  return {
    status: 200,
    headers: { "content-type": "text/event-stream; charset=utf-8", ...headers },
    steps: framesOf(events, { fault, tokens: finish.completionTokens }),
    isStreamed: true,
  };
}

/** The newest models show their thoughts only if asked to. */
function thoughtBlock(body: JsonRecord, reasoning: string): JsonRecord {
  const { display } = recordOf(body["thinking"]);
  const isOmitted = /-4-[7-9]|-5\b|fable/.test(stringOf(body["model"])) && display !== "summarized";
  const thinking = isOmitted ? "" : reasoning;
  const before = [...listOf(body["messages"]), { role: "assistant", content: [] }];
  return { type: "thinking", thinking, signature: signatureOf(body, before, thinking) };
}

function stopReason({ reason, stopSequence }: ReturnType<typeof collectAnswer>["finish"]): string {
  if (stopSequence !== undefined) return "stop_sequence";
  return { stop: "end_turn", length: "max_tokens", "tool-calls": "tool_use" }[reason];
}

function* eventsOf(parts: {
  readonly start: JsonRecord;
  readonly content: readonly JsonRecord[];
  readonly delta: JsonRecord;
}): Generator<JsonRecord, void, void> {
  yield parts.start;
  yield { type: "ping" };
  for (const [index, block] of parts.content.entries()) {
    const { text, thinking, signature, input, ...rest } = block;
    const empty = {
      ...(text !== undefined && { text: "" }),
      ...(input !== undefined && { input: {} }),
    };
    const thought = thinking === undefined ? {} : { thinking: "", signature: "" };
    yield { type: "content_block_start", index, content_block: { ...rest, ...empty, ...thought } };
    const delta = (fields: JsonRecord): JsonRecord => ({
      type: "content_block_delta",
      index,
      delta: fields,
    });
    for (const piece of pieces(text)) yield delta({ type: "text_delta", text: piece });
    for (const piece of pieces(thinking)) yield delta({ type: "thinking_delta", thinking: piece });
    if (signature !== undefined) yield delta({ type: "signature_delta", signature });
    if (input !== undefined) {
      for (const piece of pieces(JSON.stringify(input))) {
        yield delta({ type: "input_json_delta", partial_json: piece });
      }
    }
    yield { type: "content_block_stop", index };
  }
  yield parts.delta;
  yield { type: "message_stop" };
}

function pieces(text: unknown): readonly string[] {
  return stringOf(text).match(/[\s\S]{1,12}/g) ?? [];
}

/** Events as frames, with the fault applied; the tokens are told with the end. */
function* framesOf(
  events: Iterable<JsonRecord>,
  { fault: { mode }, tokens }: { readonly fault: Fault; readonly tokens: number },
): Generator<Frame, void, void> {
  let count = 0;
  for (const event of events) {
    const { type } = event;
    if (type === "message_stop" && mode === "no-done") return;
    if (type === "message_delta" && mode === "missing-finish-reason") continue;
    const sent = withUsageFault(event, mode);
    const line = mode === "crlf-framing" ? "\r\n" : "\n";
    const json = JSON.stringify(sent);
    const data = count === framesBeforeMiddle && mode === "bad-json" ? json.slice(0, -9) : json;
    const noise = mode === "comments" ? `: still here${line}${line}` : "";
    const frame = `${noise}event: ${stringOf(type)}${line}data: ${data}${line}${line}`;
    const isEnd = type === "message_delta";
    yield { data: frame, tokens: isEnd ? tokens : 0, hasUsage: isEnd && mode !== "ok-no-usage" };
    if (isEnd && mode === "usage-twice") yield { data: frame, tokens: 0 };
    count += 1;
    if (count > framesBeforeMiddle && mode === "error-event-mid-stream") {
      yield { data: `event: error\ndata: ${errorText(serverError, "req_0")}\n\n`, tokens: 0 };
      return;
    }
  }
}

function withUsageFault(event: JsonRecord, mode: Fault["mode"]): JsonRecord {
  if (mode === "ok-no-usage") {
    const { usage: _usage, message, ...rest } = event;
    if (message === undefined) return rest;
    const { usage: _counts, ...other } = recordOf(message);
    return { ...rest, message: other };
  }
  const { usage } = event;
  return mode === "wrong-usage" && isRecord(usage)
    ? { ...event, usage: inflatedUsage(usage) }
    : event;
}
