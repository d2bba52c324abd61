import type { AnswerEvent, ContentEvent, FinishEvent } from "../answer/answer.ts";
import { writeAnswer } from "../answer/write-answer.ts";
import { verifyText } from "../bedrock/credentials.ts";
import { BedrockError, errorReply as bedrockErrorReply } from "../bedrock/errors.ts";
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
  const isBedrocks = path.startsWith("/anthropic/v1/");
  const own = isBedrocks ? path.slice("/anthropic/v1".length) : path;
  if (own === "/messages") return { kind: "chat", isBedrocks };
  return own === "/messages/count_tokens" ? { kind: "count-tokens", isBedrocks } : undefined;
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
    if (isBedrocks) verifyText(request, text, { ...parts.bedrock, now: parts.clock.now() });
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

function answerReply(read: MessagesRequest, answering: Answering): Reply {
  const { fault, headers, id } = answering;
  const events = messageEvents(read, id, outsizedAnswer(fault) ?? writeAnswer(read.prompt, 0));
  if (read.isStreamed) {
    return {
      status: 200,
      headers: { "content-type": "text/event-stream; charset=utf-8", ...headers },
      steps: framesOf(events, fault.mode),
      isStreamed: true,
    };
  }
  if (fault.mode === "error-event-mid-stream") return errorReply(serverError, id);
  const { body, tokens } = wholeMessage(events);
  return withBodyFault(body, { tokens, fault, headers });
}

/** One event of a stream, and the number of completion tokens in it. */
interface MessageEvent {
  readonly event: JsonRecord;
  readonly tokens: number;
}

/** The events of an answer; text, thoughts and each call are a block of their own. */
function* messageEvents(
  { body, prompt, promptTokens }: MessagesRequest,
  id: string,
  answer: Iterable<AnswerEvent>,
): Generator<MessageEvent, void, void> {
  const hasMarks = JSON.stringify(body).includes('"cache_control"');
  const cached = hasMarks ? Math.floor(promptTokens / 4) : 0;
  const usage = {
    input_tokens: promptTokens - cached,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
    output_tokens: 1,
    service_tier: "standard",
  };
  const message = { id, type: "message", role: "assistant", model: prompt.model, content: [] };
  const unfinished = { stop_reason: null, stop_sequence: null, usage };
  yield plain({ type: "message_start", message: { ...message, ...unfinished } });
  yield plain({ type: "ping" });
  const showsThoughts = showsThoughtsOf(body);
  let index = -1;
  let open: string | undefined;
  let thoughts = "";
  const end = function* (): Generator<MessageEvent, void, void> {
    if (open === "thinking") {
      const before = [...listOf(body["messages"]), { role: "assistant", content: [] }];
      const signature = signatureOf(body, before, thoughts);
      yield plain(delta(index, { type: "signature_delta", signature }));
    }
    if (open !== undefined) yield plain({ type: "content_block_stop", index });
  };
  let isRefused = false;
  for (const event of answer) {
    if (event.kind === "finish") {
      yield* end();
      yield plain(endOf(event, isRefused));
      return yield plain({ type: "message_stop" });
    }
    isRefused ||= event.kind === "refusal";
    const { type, start, piece } = partOf(event, showsThoughts);
    if (start !== undefined && (type !== open || type === "tool_use")) {
      yield* end();
      index += 1;
      open = type;
      const block = { type: "content_block_start", index, content_block: { type, ...start } };
      yield { event: block, tokens: piece === undefined ? event.tokens : 0 };
    }
    if (piece === undefined) continue;
    thoughts += stringOf(piece["thinking"]);
    yield { event: delta(index, piece), tokens: event.tokens };
  }
}

interface Part {
  readonly type?: string;
  /** What a block begins with, if the event may begin one. */
  readonly start?: JsonRecord;
  readonly piece?: JsonRecord;
}

function partOf(event: ContentEvent, showsThoughts: boolean): Part {
  switch (event.kind) {
    case "reasoning": {
      const thinking = showsThoughts ? event.piece : "";
      const start = { thinking: "", signature: "" };
      return { type: "thinking", start, piece: { type: "thinking_delta", thinking } };
    }
    case "text":
    case "refusal":
      return {
        type: "text",
        start: { text: "" },
        piece: { type: "text_delta", text: event.piece },
      };
    case "call": {
      const id = event.id.replace(/^call_/, "toolu_");
      return { type: "tool_use", start: { id, name: event.name, input: {} } };
    }
    case "input":
      return { piece: { type: "input_json_delta", partial_json: event.piece } };
  }
}

function endOf(finish: FinishEvent, isRefused: boolean): JsonRecord {
  const { stopSequence = null, completionTokens, reasoningTokens } = finish;
  const reason = isRefused ? "refusal" : stopReason(finish);
  return {
    type: "message_delta",
    delta: { stop_reason: reason, stop_sequence: stopSequence },
    usage: {
      output_tokens: completionTokens,
      output_tokens_details: { thinking_tokens: reasoningTokens },
    },
  };
}

const plain = (event: JsonRecord): MessageEvent => ({ event, tokens: 0 });

function delta(index: number, fields: JsonRecord): JsonRecord {
  return { type: "content_block_delta", index, delta: fields };
}

/** The newest models show their thoughts only if asked to. */
function showsThoughtsOf(body: JsonRecord): boolean {
  const { display } = recordOf(body["thinking"]);
  return display === "summarized" || !/-4-[7-9]|-5\b|fable/.test(stringOf(body["model"]));
}

function stopReason({ reason, stopSequence }: FinishEvent): string {
  if (stopSequence !== undefined) return "stop_sequence";
  return { stop: "end_turn", length: "max_tokens", "tool-calls": "tool_use" }[reason];
}

/** The message that the events of a stream add up to. */
function wholeMessage(events: Iterable<MessageEvent>): {
  readonly body: JsonRecord;
  readonly tokens: number;
} {
  let message: JsonRecord = {};
  const content: Record<string, unknown>[] = [];
  let tokens = 0;
  for (const { event, tokens: more } of events) {
    tokens += more;
    if (event["type"] === "message_start") message = recordOf(event["message"]);
    if (event["type"] === "content_block_start") {
      content.push({ ...recordOf(event["content_block"]) });
    }
    if (event["type"] === "message_delta") {
      const usage = { ...recordOf(message["usage"]), ...recordOf(event["usage"]) };
      message = { ...message, ...recordOf(event["delta"]), usage };
    }
    const block = content.at(-1);
    if (block === undefined) continue;
    for (const [name, piece] of Object.entries(recordOf(event["delta"]))) {
      if (name !== "type" && typeof piece === "string") block[name] = stringOf(block[name]) + piece;
    }
    if (event["type"] !== "content_block_stop" || block["type"] !== "tool_use") continue;
    block["input"] = inputOf(stringOf(block["partial_json"]));
    delete block["partial_json"];
  }
  return { body: { ...message, content }, tokens };
}

/** Empty if it was cut at the token limit. */
function inputOf(json: string): JsonRecord {
  try {
    return recordOf(parseJson(json));
  } catch {
    return {};
  }
}

/** What stands before the first piece of a block is sent along with it. */
const beginnings: ReadonlySet<unknown> = new Set(["message_start", "ping", "content_block_start"]);

/** Events as frames, with the fault applied. */
function* framesOf(
  events: Iterable<MessageEvent>,
  mode: Fault["mode"],
): Generator<Frame, void, void> {
  let count = 0;
  let begun = "";
  for (const { event, tokens } of events) {
    const { type } = event;
    if (type === "message_stop" && mode === "no-done") return;
    if (type === "message_delta" && mode === "missing-finish-reason") continue;
    const line = mode === "crlf-framing" ? "\r\n" : "\n";
    const json = JSON.stringify(withUsageFault(event, mode));
    const data = count === framesBeforeMiddle && mode === "bad-json" ? json.slice(0, -9) : json;
    const noise = mode === "comments" ? `: still here${line}${line}` : "";
    const frame = `${begun}${noise}event: ${stringOf(type)}${line}data: ${data}${line}${line}`;
    begun = beginnings.has(type) && tokens === 0 ? frame : "";
    if (begun !== "") continue;
    const hasUsage = type === "message_delta" && mode !== "ok-no-usage";
    yield { data: frame, tokens, hasUsage };
    if (hasUsage && mode === "usage-twice") yield { data: frame, tokens: 0 };
    count += 1;
    if (count > framesBeforeMiddle && mode === "error-event-mid-stream") {
      yield { data: `event: error\ndata: ${errorText(serverError, "req_0")}\n\n`, tokens: 0 };
      return;
    }
  }
}

/** Of an event, or of the message in it. */
function withUsageFault(holder: JsonRecord, mode: Fault["mode"]): JsonRecord {
  const { usage, message, ...rest } = holder;
  const told = mode === "wrong-usage" && isRecord(usage) ? inflatedUsage(usage) : usage;
  return {
    ...rest,
    ...(isRecord(message) && { message: withUsageFault(message, mode) }),
    ...(told !== undefined && mode !== "ok-no-usage" && { usage: told }),
  };
}
