import type { AnswerEvent, ContentEvent } from "../../answer/answer-event.ts";
import type { FinishEvent } from "../../answer/collect-answer.ts";
import type { JsonRecord } from "../../read-json.ts";
import {
  echoedFields,
  responseFields,
  stopReasonOf,
  toolUseId,
  usageBody,
} from "./converse-answer.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { reasoningDelta, reasoningEnd } from "./reasoning-blocks.ts";

/** One event of a stream before it is framed. */
export interface StreamEvent {
  readonly type:
    | "messageStart"
    | "contentBlockStart"
    | "contentBlockDelta"
    | "contentBlockStop"
    | "messageStop"
    | "metadata";
  readonly body: JsonRecord;
  /** The number of completion tokens in it. */
  readonly tokens: number;
}

/** The events of an answer in the provider's order. `latencyMs` is called at the end. */
export function* streamEvents(
  request: ConverseRequest,
  answer: Iterable<AnswerEvent>,
  latencyMs: () => number,
): Generator<StreamEvent, void, void> {
  yield { type: "messageStart", body: { role: "assistant" }, tokens: 0 };
  const blocks = new BlockWriter(request);
  for (const part of answer) {
    if (part.kind !== "finish") {
      yield* blocks.write(part);
      continue;
    }
    yield* blocks.close();
    yield messageStop(part, request);
    yield metadata(part, request, latencyMs());
  }
}

/** Puts each kind of content, and each tool call, into its own block. */
class BlockWriter {
  readonly #request: ConverseRequest;
  #index = -1;
  #open: string | undefined;
  #thoughts = "";
  /** Tokens of thoughts that the caller does not see. */
  #hiddenTokens = 0;

  constructor(request: ConverseRequest) {
    this.#request = request;
  }

  *write(part: ContentEvent): Generator<StreamEvent, void, void> {
    const block = blockOf(part);
    if (block !== this.#open) {
      yield* this.close();
      this.#open = block;
      this.#index += 1;
    }
    const { tokens } = part;
    switch (part.kind) {
      case "reasoning": {
        this.#thoughts += part.piece;
        const shown = reasoningDelta(part.piece, this.#request);
        if (shown === undefined) this.#hiddenTokens += tokens;
        else yield this.#delta({ reasoningContent: shown }, tokens);
        break;
      }
      case "text":
      case "refusal":
        yield this.#delta({ text: part.piece }, tokens);
        break;
      case "call": {
        const start = { toolUse: { toolUseId: toolUseId(part.id), name: part.name } };
        const body = { contentBlockIndex: this.#index, start };
        yield { type: "contentBlockStart", body, tokens };
        break;
      }
      case "input":
        // A tool without arguments gets no JSON at all.
        yield this.#delta({ toolUse: { input: part.piece === "{}" ? "" : part.piece } }, tokens);
        break;
    }
  }

  *close(): Generator<StreamEvent, void, void> {
    if (this.#open === undefined) return;
    if (this.#open === "reasoning") {
      const end = { reasoningContent: reasoningEnd(this.#thoughts, this.#request) };
      yield this.#delta(end, this.#hiddenTokens);
      this.#hiddenTokens = 0;
      this.#thoughts = "";
    }
    yield { type: "contentBlockStop", body: { contentBlockIndex: this.#index }, tokens: 0 };
    this.#open = undefined;
  }

  #delta(delta: JsonRecord, tokens: number): StreamEvent {
    return { type: "contentBlockDelta", body: { contentBlockIndex: this.#index, delta }, tokens };
  }
}

function blockOf(part: ContentEvent): string {
  if (part.kind === "call" || part.kind === "input") return `call ${part.index}`;
  return part.kind === "reasoning" ? "reasoning" : "text";
}

function messageStop(finish: FinishEvent, request: ConverseRequest): StreamEvent {
  const fields = responseFields(finish, request);
  const additional = fields === undefined ? {} : { additionalModelResponseFields: fields };
  const body = { stopReason: stopReasonOf(finish, request), ...additional };
  return { type: "messageStop", body, tokens: 0 };
}

function metadata(finish: FinishEvent, request: ConverseRequest, latencyMs: number): StreamEvent {
  const body = {
    usage: usageBody(request, finish.completionTokens),
    metrics: { latencyMs },
    ...echoedFields(request),
  };
  return { type: "metadata", body, tokens: 0 };
}
