import type { AnswerEvent, FinishEvent } from "../answer/answer.ts";
import { writeAnswer } from "../answer/write-answer.ts";
import { inflatedUsage, outsizedAnswer } from "../faults/bodies.ts";
import type { Fault } from "../faults/fault-modes.ts";
import { isRecord, type JsonRecord, recordOf, stringOf } from "../json.ts";
import { bodyReply, serverError } from "../openai/errors.ts";
import { type Frame, framesBeforeMiddle, type Reply } from "../reply.ts";
import { ciphertextOf, type ResponsesRequest } from "./request.ts";

interface Identity {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
}

/** Answers a request of Responses, plain or streamed. */
export function responsesReply(read: ResponsesRequest, identity: Identity, fault: Fault): Reply {
  const answer = outsizedAnswer(fault) ?? writeAnswer(read.prompt, 0);
  const events = responseEvents(read, identity, answer);
  if (read.isStreamed) {
    return {
      status: 200,
      headers: { "content-type": "text/event-stream; charset=utf-8" },
      steps: framesOf(events, fault.mode),
      isStreamed: true,
    };
  }
  let last: JsonRecord = {};
  let tokens = 0;
  for (const { event, tokens: more } of events) {
    last = event;
    tokens += more;
  }
  const response = recordOf(last["response"]);
  // The status is where chat has the reason of the end.
  const body = fault.mode === "missing-finish-reason" ? { ...response, status: null } : response;
  return bodyReply(body, tokens, fault);
}

/** One event of a stream, and the number of completion tokens in it. */
interface ResponseEvent {
  readonly event: JsonRecord;
  readonly tokens: number;
}

/** The names of the events of a kind of item's text, and the field of its item. */
const texts = {
  reasoning: { name: "reasoning_summary_text", field: "text" },
  text: { name: "output_text", field: "text" },
  refusal: { name: "refusal", field: "refusal" },
  function: { name: "function_call_arguments", field: "arguments" },
  custom: { name: "custom_tool_call_input", field: "input" },
} as const;

interface OpenItem {
  readonly kind: keyof typeof texts;
  readonly index: number;
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  text: string;
}

function* responseEvents(
  read: ResponsesRequest,
  { id, created, model }: Identity,
  answer: Iterable<AnswerEvent>,
): Generator<ResponseEvent, void, void> {
  const output: JsonRecord[] = [];
  const calls: OpenItem[] = [];
  let open: OpenItem | undefined;
  const response = (fields: JsonRecord): JsonRecord => ({
    id: `resp_${id}`,
    object: "response",
    created_at: created,
    model,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    output: [],
    store: false,
    service_tier: "default",
    ...fields,
  });
  const begin = (kind: OpenItem["kind"], callId = "", name = ""): OpenItem => {
    const index = output.push({}) - 1;
    return { kind, index, id: `item_${id}${index}`, callId, name, text: "" };
  };
  const end = function* (item: OpenItem): Generator<ResponseEvent, void, void> {
    const { name, field } = texts[item.kind];
    const place = { item_id: item.id, output_index: item.index, ...partOf(item) };
    yield { event: { type: `response.${name}.done`, ...place, [field]: item.text }, tokens: 0 };
    const done = itemOf(item, "completed", read);
    output[item.index] = done;
    yield plain({ type: "response.output_item.done", output_index: item.index, item: done });
  };
  yield plain({ type: "response.created", response: response({}) });
  yield plain({ type: "response.in_progress", response: response({}) });
  for (const event of answer) {
    if (event.kind === "finish") {
      if (open !== undefined) yield* end(open);
      for (const call of calls) yield* end(call);
      const status = event.reason === "length" ? "incomplete" : "completed";
      const details = event.reason === "length" ? { reason: "max_output_tokens" } : null;
      const usage = usageOf(read, event);
      const told = response({ status, output, incomplete_details: details, usage });
      return yield plain({ type: `response.${status}`, response: told });
    }
    if (event.kind === "call") {
      if (open !== undefined) yield* end(open);
      open = undefined;
      const call = begin(event.tool === "function" ? "function" : "custom", event.id, event.name);
      calls.push(call);
      yield { event: addedOf(call, read), tokens: event.tokens };
      continue;
    }
    if (event.kind !== "input" && open?.kind !== event.kind) {
      if (open !== undefined) yield* end(open);
      open = begin(event.kind);
      yield plain(addedOf(open, read));
    }
    const item = event.kind === "input" ? calls[event.index] : open;
    if (item === undefined) continue;
    item.text += event.piece;
    const place = { item_id: item.id, output_index: item.index, ...partOf(item) };
    const type = `response.${texts[item.kind].name}.delta`;
    yield { event: { type, ...place, delta: event.piece }, tokens: event.tokens };
  }
}

const plain = (event: JsonRecord): ResponseEvent => ({ event, tokens: 0 });

function partOf({ kind }: OpenItem): JsonRecord {
  if (kind === "reasoning") return { summary_index: 0 };
  return kind === "text" || kind === "refusal" ? { content_index: 0 } : {};
}

function addedOf(item: OpenItem, read: ResponsesRequest): JsonRecord {
  const added = itemOf({ ...item, text: "" }, "in_progress", read);
  return { type: "response.output_item.added", output_index: item.index, item: added };
}

function itemOf(
  { kind, id, callId, name, text }: OpenItem,
  status: string,
  { prompt, groups, encrypts }: ResponsesRequest,
): JsonRecord {
  switch (kind) {
    case "reasoning": {
      const summary = text === "" ? [] : [{ type: "summary_text", text }];
      const sealed = encrypts ? { encrypted_content: ciphertextOf(prompt.model, text) } : {};
      return { id, type: "reasoning", summary, ...sealed };
    }
    case "text":
    case "refusal": {
      const part =
        kind === "text"
          ? { type: "output_text", text, annotations: [], logprobs: [] }
          : { type: "refusal", refusal: text };
      return { id, type: "message", role: "assistant", status, content: text === "" ? [] : [part] };
    }
    default: {
      const type = kind === "function" ? "function_call" : "custom_tool_call";
      const group = groups.get(name);
      const { field } = texts[kind];
      const call = { id, type, status, call_id: callId, name, [field]: text };
      return group === undefined ? call : { ...call, namespace: group };
    }
  }
}

function usageOf({ promptTokens, cachedTokens }: ResponsesRequest, finish: FinishEvent) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
    output_tokens: finish.completionTokens,
    output_tokens_details: { reasoning_tokens: finish.reasoningTokens },
    total_tokens: promptTokens + finish.completionTokens,
  };
}

/** What stands before the first piece of an item is sent along with it. */
const beginnings = /\.(?:created|in_progress|added)$/;
const ends = /^response\.(?:completed|incomplete)$/;

/** Events as frames, with the fault applied. */
function* framesOf(
  events: Iterable<ResponseEvent>,
  mode: Fault["mode"],
): Generator<Frame, void, void> {
  let count = 0;
  let sequence = 0;
  let begun = "";
  for (const { event, tokens } of events) {
    const type = stringOf(event["type"]);
    const isEnd = ends.test(type);
    if (isEnd && (mode === "no-done" || mode === "missing-finish-reason")) return;
    const line = mode === "crlf-framing" ? "\r\n" : "\n";
    const told = { ...(isEnd ? withUsageFault(event, mode) : event), sequence_number: sequence };
    sequence += 1;
    const json = JSON.stringify(told);
    const data = count === framesBeforeMiddle && mode === "bad-json" ? json.slice(0, -9) : json;
    const noise = mode === "comments" ? `: still here${line}${line}` : "";
    const frame = `${begun}${noise}event: ${type}${line}data: ${data}${line}${line}`;
    begun = beginnings.test(type) && tokens === 0 ? frame : "";
    if (begun !== "") continue;
    yield { data: frame, tokens, hasUsage: isEnd && mode !== "ok-no-usage" };
    count += 1;
    if (count <= framesBeforeMiddle || mode !== "error-event-mid-stream") continue;
    const { message, code } = { ...serverError(500).body, code: "server_error" };
    yield {
      data: `event: error\ndata: ${JSON.stringify({ type: "error", code, message })}\n\n`,
      tokens: 0,
    };
    return;
  }
}

function withUsageFault(event: JsonRecord, mode: Fault["mode"]): JsonRecord {
  const { usage, ...rest } = recordOf(event["response"]);
  if (mode === "ok-no-usage") return { ...event, response: rest };
  if (mode !== "wrong-usage" || !isRecord(usage)) return event;
  return { ...event, response: { ...rest, usage: inflatedUsage(usage) } };
}
