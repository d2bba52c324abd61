import type { ChatEvent, FinishReason } from "../../domain/chat/answer.ts";
import { flatNameOf, type ToolKind } from "../../domain/chat/conversation.ts";
import { brokenAnswer, UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import {
  isObject,
  type JsonObject,
  listOf,
  nonEmpty,
  numberOf,
  objectOf,
  textOf,
} from "../../domain/json-fields.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { objectsIn } from "../fields.ts";
import { redactedMark } from "./output-items.ts";

/** What reading an answer needs beside it. */
export interface ResponseServices {
  /** For servers that omit the ids of calls. */
  readonly newToolCallId: () => string;
  /** The failure that an error of the answer means. */
  readonly failureOf: (error: unknown) => UpstreamFailure;
  /** The usage that a response tells. */
  readonly usageOf: (response: JsonObject) => TokenUsage | undefined;
  /** Why the answer ended, by the server's word. Throws for one that ended no answer. */
  readonly finishOf: (word: string, hasCalls: boolean) => FinishReason;
  /** The caller used the deprecated `functions`, so one call is answered as `function_call`. */
  readonly usesFunctions: boolean;
}

/**
 * Reads one response: the events of its stream, or a whole one. Items are told apart by their place
 * in the output, since servers change their ids from event to event (vercel/ai#18548). What deltas
 * left out is taken from the events that end a part, an item or the response.
 * Source: `ResponseStreamEvent` in OpenAI's OpenAPI document.
 */
export class ResponseReader {
  readonly #services: ResponseServices;
  readonly #items = new Map<number, OpenItem>();
  readonly #usedIds = new Set<string>();
  #events: ChatEvent[] = [];
  /** The place of the item that began last, for servers that do not tell one. */
  #latest = 0;
  #begun = 0;
  #calls = 0;
  #hasContent = false;
  #isFinished = false;

  constructor(services: ResponseServices) {
    this.#services = services;
  }

  /** Adds the next events to a list. */
  writeTo(events: ChatEvent[]): void {
    this.#events = events;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Whether an event can be missed: there was content, and no call is incomplete. */
  get mayGoOn(): boolean {
    for (const { call, isDone } of this.#items.values()) {
      if (call !== undefined && !isDone) return false;
    }
    return this.#hasContent;
  }

  /** False for an event that cannot be read. Throws `UpstreamFailure` for an error. */
  readEvent(event: JsonObject): boolean {
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
        if (response !== undefined) this.readWhole(response);
        return response !== undefined;
      }
      case "error":
        throw this.#services.failureOf(objectOf(event["error"]) ?? event);
      case undefined:
        if (event["error"] !== undefined) throw this.#services.failureOf(event["error"]);
        return false;
      default:
        return this.#readText(type, event);
    }
  }

  /** The response at its end: what no event of a stream has told, its usage, and how it ended. */
  readWhole(response: JsonObject): void {
    const { status, error } = response;
    const usage = this.#services.usageOf(response);
    try {
      if (isObject(error) || status === "failed") throw this.#services.failureOf(error ?? {});
      listOf(response["output"])?.forEach((item, index) => {
        // Items that a stream has told are not told again, wherever it placed them.
        const isMissing = index >= this.#begun || this.#items.get(index)?.isDone === false;
        if (isObject(item) && isMissing) this.#readItem(index, item, true);
      });
      for (const index of this.#items.keys()) this.#endItem(index);
      this.#finish(response);
    } catch (failure) {
      throw failure instanceof UpstreamFailure ? failure.withUsage(usage) : failure;
    }
    if (usage !== undefined) this.#events.push({ type: "usage-report", usage });
  }

  #finish(response: JsonObject): void {
    const reason = endOf(response);
    const calls = this.#calls > 0;
    const finishReason = this.#services.finishOf(reason, calls);
    if (!this.#hasContent && finishReason === "stop") throw brokenAnswer("the answer is empty");
    const isCall = this.#services.usesFunctions && finishReason === "tool_calls";
    const serviceTier = nonEmpty(response["service_tier"]);
    if (serviceTier !== undefined) {
      this.#events.push({ type: "answer-start", systemFingerprint: undefined, serviceTier });
    }
    this.#isFinished = true;
    this.#events.push({
      type: "choice-finish",
      choice,
      finishReason: isCall ? "function_call" : finishReason,
    });
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

  #open(index: number, type: ItemType, { call_id: id, name, namespace }: JsonObject): OpenItem {
    const item: OpenItem = { type, call: undefined, said: new Map(), text: "", isDone: false };
    this.#endItem(index);
    this.#items.set(index, item);
    this.#begun += 1;
    const kind = callKinds[type];
    if (kind === undefined) return item;
    const toolName = nonEmpty(name);
    if (toolName === undefined) throw brokenAnswer("a tool call has no name");
    const flat = flatNameOf({ name: toolName, namespace: nonEmpty(namespace) });
    return this.#startCall(item, { id: textOf(id), kind, name: flat });
  }

  #startCall(item: OpenItem, call: NewCall): OpenItem {
    this.#hasContent = true;
    const { kind, name } = call;
    if (this.#services.usesFunctions) {
      // The deprecated format has room for one call.
      if (this.#calls > 0) return item;
      this.#events.push({ type: "function-call-start", choice, name });
    } else {
      const { newToolCallId } = this.#services;
      const isKnown = call.id === undefined || call.id === "" || this.#usedIds.has(call.id);
      const id = isKnown ? newToolCallId() : (call.id ?? "");
      this.#usedIds.add(id);
      this.#events.push({ type: "tool-call-start", choice, call: this.#calls, id, kind, name });
    }
    item.call = this.#calls;
    this.#calls += 1;
    return item;
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
        this.#say(open, { name: callTexts[type], part: 0, text, isWhole });
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
    const thought = { type: "reasoning", text: item.text, opaque: value, isRedacted } as const;
    this.#hasContent = true;
    this.#events.push({ type: "reasoning-block", choice, content: thought });
  }

  /** Forwards what of a text is new. A whole text that differs from its pieces changes nothing. */
  #say(item: OpenItem, { name, part, text, isWhole, logprobs }: Piece): void {
    const key = `${name} ${part}`;
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
    this.#emit(item, { name, text: said, logprobs: isWhole && before !== "" ? [] : logprobs });
  }

  #emit(
    { type, call }: OpenItem,
    { name, text, logprobs = [] }: Pick<Piece, "name" | "text" | "logprobs">,
  ): void {
    const probable = logprobs.length > 0 ? { logprobs } : undefined;
    switch (type) {
      case "message": {
        const delta = name === "refusal" ? "refusal-delta" : "text-delta";
        this.#events.push({ type: delta, choice, text, ...probable });
        return;
      }
      case "reasoning":
        this.#events.push({ type: "reasoning-delta", choice, text });
        return;
      default:
        if (call === undefined) return;
        this.#events.push(
          this.#services.usesFunctions
            ? { type: "function-call-delta", choice, arguments: text }
            : { type: "tool-call-delta", choice, call, arguments: text },
        );
    }
  }

  /** A function without arguments gets no text, but its arguments must be JSON. */
  #endItem(index: number): void {
    const item = this.#items.get(index);
    if (item === undefined || item.isDone) return;
    if (item.type === "function_call" && item.text === "") {
      this.#emit(item, { name: callTexts.function_call, text: "{}" });
    }
    item.isDone = true;
  }
}

/** The answer is one choice. */
const choice = 0;

type ItemType = "message" | "reasoning" | "function_call" | "custom_tool_call";

interface OpenItem {
  readonly type: ItemType;
  /** The index of a call that the caller gets. */
  call: number | undefined;
  /** What the caller has of each part, by the name of its events and its index. */
  readonly said: Map<string, string>;
  /** All of it together. */
  text: string;
  /** The events that a thought's text is taken from. */
  thoughts?: string;
  isDone: boolean;
}

interface NewCall {
  readonly id: string | undefined;
  readonly kind: ToolKind;
  readonly name: string;
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
const callTexts = {
  function_call: "function_call_arguments",
  custom_tool_call: "custom_tool_call_input",
} as const;

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
