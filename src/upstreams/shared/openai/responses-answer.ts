import type { ChatEvent } from "../../../domain/chat/answer.ts";
import { flatNameOf, type ToolKind } from "../../../domain/chat/conversation.ts";
import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import {
  isObject,
  type JsonObject,
  listOf,
  nonEmpty,
  numberOf,
  objectOf,
  parseJson,
  textOf,
} from "../../../domain/json-fields.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { objectsIn } from "../../../wires/fields.ts";
import { redactedMark } from "../../../wires/responses/output-items.ts";
import type { AnswerContext } from "../answers/answer-context.ts";
import { AnswerEvents } from "../answers/answer-events.ts";
import type { ToolInput } from "../answers/tool-input.ts";
import type { OnUnknownFinish } from "../finish-words.ts";
import type { EventReader } from "../answer-codec.ts";
import { errorIn, messageOf } from "./error-body.ts";
import { classifyError } from "./read-failure.ts";

/** What reading an answer needs beside it. */
export interface ResponseParts {
  readonly context: AnswerContext;
  readonly onUnknownFinish: OnUnknownFinish;
  /** For servers that omit the ids of calls. */
  readonly newToolCallId: () => string;
  /** The usage that a response tells. */
  readonly usageOf: (response: JsonObject) => TokenUsage | undefined;
}

/**
 * Reads one response: the events of its stream, or a whole one. Items are told apart by their place
 * in the output, since servers change their ids from event to event (vercel/ai#18548). What deltas
 * left out is taken from the events that end a part, an item or the response.
 * Source: `ResponseStreamEvent` in OpenAI's OpenAPI document.
 */
export class ResponseAnswer implements EventReader {
  readonly #parts: ResponseParts;
  readonly #answer: AnswerEvents;
  readonly #items = new Map<number, OpenItem>();
  /** The place of the item that began last, for servers that do not tell one. */
  #latest = 0;
  #begun = 0;
  #hasContent = false;
  #isFinished = false;

  constructor(parts: ResponseParts) {
    this.#parts = parts;
    this.#answer = new AnswerEvents(parts.context, parts.onUnknownFinish);
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  get isCut(): boolean {
    return this.#answer.isCut;
  }

  get mayGoOn(): boolean {
    for (const { input, isDone } of this.#items.values()) {
      if (input !== undefined && !isDone) return false;
    }
    return this.#hasContent;
  }

  readData(data: string, events: ChatEvent[]): boolean {
    const event = parseJson(data);
    if (!isObject(event)) return data.trim() === "[DONE]";
    this.#answer.writeTo(events);
    const isSound = this.#readEvent(event);
    if (this.isCut && !this.#isFinished) this.#finish("stop_sequence");
    return isSound;
  }

  readWhole(json: string, events: ChatEvent[]): void {
    const response = parseJson(json);
    if (isObject(response)) refuseError(response);
    if (!isObject(response) || !Array.isArray(response["output"])) {
      throw brokenAnswer("the upstream's answer is not the expected JSON");
    }
    this.#answer.writeTo(events);
    this.#readResponse(response);
  }

  end(): void {
    throw brokenAnswer("the upstream's stream ended before the answer was finished");
  }

  #readEvent(event: JsonObject): boolean {
    const type = textOf(event["type"]);
    switch (type) {
      case "response.output_item.added":
      case "response.output_item.done": {
        const item = objectOf(event["item"]);
        if (item === undefined) return false;
        this.#readItem(this.#indexIn(event, type.endsWith("added")), item, type.endsWith("done"));
        return true;
      }
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled": {
        const response = objectOf(event["response"]);
        if (response !== undefined) this.#readResponse(response);
        return response !== undefined;
      }
      case "error":
        throw failureOf(objectOf(event["error"]) ?? event);
      case undefined:
        refuseError(event);
        return false;
      default:
        return this.#readText(type, event);
    }
  }

  /** The response at its end: what no event of a stream has told, its usage, and how it ended. */
  #readResponse(response: JsonObject): void {
    const { status, error } = response;
    const usage = this.#parts.usageOf(response);
    try {
      if (isObject(error) || status === "failed") throw failureOf(error ?? {});
      listOf(response["output"])?.forEach((item, index) => {
        // Items that a stream has told are not told again, wherever it placed them.
        const isMissing = index >= this.#begun || this.#items.get(index)?.isDone === false;
        if (isObject(item) && isMissing) this.#readItem(index, item, true);
      });
      for (const index of this.#items.keys()) this.#endItem(index);
      const word = endOf(response);
      if (!this.#hasContent && word === "completed") throw brokenAnswer("the answer is empty");
      this.#answer.serviceTier(nonEmpty(response["service_tier"]));
      this.#finish(word, usage);
    } catch (failure) {
      throw failure instanceof UpstreamFailure ? failure.withUsage(usage) : failure;
    }
  }

  #finish(word: string, usage?: TokenUsage): void {
    this.#answer.finish(word, { usage });
    this.#isFinished = true;
  }

  #indexIn(event: JsonObject, isNew: boolean): number {
    const told = numberOf(event["output_index"]);
    if (told !== undefined) this.#latest = told;
    else if (isNew && this.#items.has(this.#latest)) this.#latest += 1;
    return told ?? this.#latest;
  }

  /** Pieces of text, and whole texts at their end. Events that are not known yet say nothing. */
  #readText(type: string, event: JsonObject): boolean {
    const [, name = "", end] = /^response\.(\w+)\.(delta|done)$/.exec(type) ?? [];
    const kind = kinds[name];
    if (kind === undefined) return true;
    const text = end === "delta" ? event["delta"] : event[kind.field];
    // Servers end a part without repeating it.
    if (typeof text !== "string") return end === "done";
    const index = this.#indexIn(event, false);
    const known = this.#items.get(index);
    const isOwn = known?.type === kind.type;
    // A call without its beginning comes whole at its end.
    if (!isOwn && callKinds[kind.type] !== undefined) return true;
    const item = isOwn ? known : this.#open(index, kind.type, {});
    const part = numberOf(event["content_index"]) ?? numberOf(event["summary_index"]) ?? 0;
    const logprobs = listOf(event["logprobs"]);
    this.#say(item, { name, part, text, isWhole: end === "done", logprobs });
    return true;
  }

  #open(index: number, type: ItemType, call: JsonObject): OpenItem {
    this.#endItem(index);
    const kind = callKinds[type];
    const input = kind === undefined ? undefined : this.#startCall(kind, call);
    const item: OpenItem = { type, input, said: new Map(), text: "", isDone: false };
    this.#items.set(index, item);
    this.#begun += 1;
    return item;
  }

  #startCall(kind: ToolKind, { call_id: id, name, namespace }: JsonObject): ToolInput {
    const toolName = nonEmpty(name);
    if (toolName === undefined) throw brokenAnswer("a tool call has no name");
    this.#hasContent = true;
    const flat = flatNameOf({ name: toolName, namespace: nonEmpty(namespace) });
    return this.#answer.plainCall(nonEmpty(id) ?? this.#parts.newToolCallId(), flat, kind);
  }

  #readItem(index: number, item: JsonObject, isWhole: boolean): void {
    const type = itemTypes[textOf(item["type"]) ?? ""];
    if (type === undefined) return;
    // Servers place several items alike.
    const known = this.#items.get(index);
    const isNew = known?.type !== type || (known.isDone && !isWhole);
    const open = isNew ? this.#open(index, type, item) : known;
    if (!isWhole || open.isDone) return;
    switch (type) {
      case "message":
        objectsIn(item["content"]).forEach((part, at) => this.#readPart(open, part, at));
        break;
      case "reasoning":
        this.#readThought(open, item);
        break;
      default: {
        const text = textOf(item[type === "function_call" ? "arguments" : "input"]) ?? "";
        this.#say(open, { name: type, part: 0, text, isWhole });
      }
    }
    this.#endItem(index);
  }

  #readPart(item: OpenItem, part: JsonObject, at: number): void {
    const isRefusal = part["type"] === "refusal";
    const text = textOf(part[isRefusal ? "refusal" : "text"]) ?? "";
    const logprobs = listOf(part["logprobs"]);
    const name = isRefusal ? "refusal" : "output_text";
    this.#say(item, { name, part: at, text, isWhole: true, logprobs });
  }

  /** The ciphertext at the end counts: that of the beginning is another one. */
  #readThought(item: OpenItem, { content, summary, encrypted_content: sealed }: JsonObject): void {
    const raw = objectsIn(content);
    const name = raw.length > 0 ? "reasoning_text" : "reasoning_summary_text";
    (raw.length > 0 ? raw : objectsIn(summary)).forEach((each, part) => {
      this.#say(item, { name, part, text: textOf(each["text"]) ?? "", isWhole: true });
    });
    const opaque = nonEmpty(sealed);
    if (opaque === undefined) return;
    const isRedacted = opaque.startsWith(redactedMark) || undefined;
    const value = isRedacted === true ? opaque.slice(redactedMark.length) : opaque;
    this.#hasContent = true;
    this.#answer.reasoningBlock({ type: "reasoning", text: item.text, opaque: value, isRedacted });
  }

  /** Forwards what of a text is new. A whole text that differs from its pieces changes nothing. */
  #say(item: OpenItem, { name, part, text, isWhole, logprobs }: Piece): void {
    // A call has one text.
    const key = item.input === undefined ? `${name} ${part}` : "";
    const before = item.said.get(key) ?? "";
    const piece = !isWhole ? text : text.startsWith(before) ? text.slice(before.length) : "";
    // Servers end a message too early.
    if (piece === "" || (item.isDone && item.type !== "message")) return;
    const isThought = item.type === "reasoning";
    // Of a thought, the caller gets the text or its summary, whichever comes first.
    if (isThought) {
      item.thoughts ??= name;
      if (item.thoughts !== name) return;
    }
    // A summary has paragraphs.
    const isNextPart = isThought && before === "" && item.text !== "";
    const said = isNextPart ? `\n\n${piece}` : piece;
    item.said.set(key, before + piece);
    item.text += said;
    this.#hasContent ||= !isThought;
    const probable = isWhole && before !== "" ? undefined : logprobs;
    if (isThought) this.#answer.reasoning(said);
    else if (item.input !== undefined) item.input.push(said);
    else if (name === "refusal") this.#answer.refusal(said, probable);
    else this.#answer.text(said, probable);
  }

  #endItem(index: number): void {
    const item = this.#items.get(index);
    if (item === undefined || item.isDone) return;
    item.input?.end();
    item.isDone = true;
  }
}

function failureOf(error: unknown): UpstreamFailure {
  return new UpstreamFailure(classifyError(undefined, error));
}

/** A 200 that is an error, or has an error in place of the output. */
function refuseError(response: JsonObject): void {
  const isFlat = response["output"] === undefined && messageOf(response) !== undefined;
  const error = errorIn(response) ?? (isFlat ? response : undefined);
  if (error !== undefined) throw failureOf(error);
}

type ItemType = "message" | "reasoning" | "function_call" | "custom_tool_call";

interface OpenItem {
  readonly type: ItemType;
  /** Of a call. */
  readonly input: ToolInput | undefined;
  /** What the caller has of each part, by the name of its events and its index. */
  readonly said: Map<string, string>;
  /** All of it together. */
  text: string;
  /** The events that a thought's text is taken from. */
  thoughts?: string;
  isDone: boolean;
}

interface Piece {
  readonly name: string;
  readonly part: number;
  readonly text: string;
  readonly isWhole: boolean;
  readonly logprobs?: readonly unknown[] | undefined;
}

/** Items that only OpenAI's own tools write are left out. */
const itemTypes: Readonly<Record<string, ItemType>> = {
  message: "message",
  reasoning: "reasoning",
  function_call: "function_call",
  custom_tool_call: "custom_tool_call",
};
const callKinds: Readonly<Partial<Record<ItemType, ToolKind>>> = {
  function_call: "function",
  custom_tool_call: "custom",
};
/** Texts by the name of their events: the item that has them, and the field of the whole text. */
const kinds: Readonly<Record<string, { readonly type: ItemType; readonly field: string }>> = {
  output_text: { type: "message", field: "text" },
  refusal: { type: "message", field: "refusal" },
  reasoning_text: { type: "reasoning", field: "text" },
  reasoning_summary_text: { type: "reasoning", field: "text" },
  function_call_arguments: { type: "function_call", field: "arguments" },
  custom_tool_call_input: { type: "custom_tool_call", field: "input" },
};

/** The server's word for how a response ended. Other servers' words of the same meaning occur. */
function endOf({ status, incomplete_details: details }: JsonObject): string {
  if (status === "incomplete") return nonEmpty(objectOf(details)?.["reason"]) ?? "length";
  if (status === undefined) return "completed";
  return textOf(status) ?? "";
}
