import type { AnswerReasoning, ChatEvent } from "../../domain/chat/answer.ts";
import type { ToolKind } from "../../domain/chat/conversation.ts";
import { isWholeInput } from "../../domain/chat/tool-input.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { JsonObject } from "../../domain/json-fields.ts";
import { writeJsonText } from "../../domain/json-object.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { type EventOf, type StreamOptions, StreamWriter } from "../stream-writer.ts";
import {
  callItem,
  type ItemKind,
  itemId,
  type ItemStatus,
  messageItem,
  type Part,
  partBody,
  reasoningItem,
} from "./output-items.ts";
import {
  type Outcome,
  outcomeOf,
  responseFields,
  type ResponseOptions,
  type ResponseState,
} from "./write-answer.ts";

export type ResponseStreamOptions = ResponseOptions & Pick<StreamOptions, "now">;

/**
 * Writes events as those of `POST /v1/responses`. Every item and part is added and done, since the
 * helpers of OpenAI's clients throw on gaps. Source: `ResponseStreamEvent` in OpenAI's document.
 */
export class ResponseStreamWriter extends StreamWriter {
  readonly #options: ResponseStreamOptions;
  /** The fields that repeat the request, as JSON without braces. */
  readonly #echo: string;
  #sequence = 0;
  #isBegun = false;
  /** Items in the order of their beginning; undefined until they are done. */
  readonly #output: (object | undefined)[] = [];
  /** The message or thought that grows. */
  #current: OpenItem | undefined;
  /** They stay open beside others until their end. */
  readonly #calls = new Map<number, OpenCall>();
  /** Whether there is an item beside thoughts. */
  #isAnswered = false;

  constructor(options: ResponseStreamOptions) {
    super({ choices: false });
    this.#options = options;
    this.#echo = JSON.stringify(options.echo).slice(1, -1);
  }

  override write(events: readonly ChatEvent[]): string {
    this.#begin();
    return super.write(events);
  }

  /** Helpers of OpenAI's clients throw on any event before the first of a response. */
  keepAlive(): string | undefined {
    return this.#isBegun ? 'event: keepalive\ndata: {"type":"keepalive"}\n\n' : undefined;
  }

  end(usage: TokenUsage): string | Promise<string> {
    const { now, echo, store } = this.#options;
    const outcome = this.#outcome();
    this.#begin();
    this.#closeAll(outcome);
    const state = { outcome, usage, completedAt: now() };
    const type = `response.${outcome.status}`;
    if (store === undefined) return this.#last(type, state);
    return store
      .keep({ ...this.#fields(state), ...echo })
      .then((isStored) => this.#last(type, { ...state, isStored }));
  }

  override cancel(): void {
    this.#options.store?.release();
  }

  /** Clients look at different ones of the two events: some see only errors, Codex only failures. */
  override fail(error: GatewayError): string {
    this.cancel();
    this.#begin();
    const shown = error.toBody().error;
    const body = JSON.stringify({ ...shown, code: shown.code ?? shown.type });
    this.#frame("error", `"error":${body}`);
    return this.#last("response.failed", { error, isStored: false });
  }

  protected text({ text, logprobs }: EventOf<"text-delta">): void {
    if (text !== "") this.#append("text", text, logprobs);
  }

  protected refusal({ text, logprobs }: EventOf<"refusal-delta">): void {
    this.#append("refusal", text, logprobs);
  }

  protected thought({ text }: EventOf<"reasoning-delta">): void {
    if (text !== "") this.#append("summary", text);
  }

  protected thoughtEnd({ content }: EventOf<"reasoning-block">): void {
    const isOpen = this.#current?.type === "reasoning" && content.isRedacted !== true;
    if (!isOpen && content.text !== "") this.#append("summary", content.text);
    const open = this.#current;
    if (open?.type === "reasoning" && content.isRedacted !== true) open.sealed = content;
    else this.#openItem("reasoning", content);
    this.#closeCurrent("completed");
  }

  protected callStart({ call, id, kind, name }: EventOf<"tool-call-start">): void {
    const item = { ...this.#newItem(kind), kind, callId: id, name, text: "" };
    this.#calls.set(call, item);
    this.#itemEvent("added", item, this.#callBody(item, "in_progress"));
  }

  protected callDelta({ call: index, arguments: text }: EventOf<"tool-call-delta">): void {
    const call = this.#calls.get(index);
    if (call !== undefined && text !== "") this.#grow(call, text);
  }

  protected choiceEnd(): void {
    this.#closeAll(this.#outcome());
  }

  #outcome(): Outcome {
    return outcomeOf(this.finish?.finishReason, this.hasRefusal);
  }

  #begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#response("response.created", {});
    this.#response("response.in_progress", {});
  }

  #append(kind: Part["kind"], text: string, logprobs: readonly unknown[] = []): void {
    const part = this.#openPart(kind);
    for (const each of logprobs) part.logprobs.push(each);
    this.#grow(part, text, logprobsField(kind, logprobs));
  }

  /** The part of the kind that grows: a new one, if there is none. */
  #openPart(kind: Part["kind"]): OpenPart {
    const open = this.#current?.parts.at(-1);
    if (open?.kind === kind) return open;
    const type = kind === "summary" ? "reasoning" : "message";
    let item = this.#current;
    if (item?.type !== type) item = this.#openItem(type);
    else if (open !== undefined) this.#partDone(open);
    const index = kind === "summary" ? "summary_index" : "content_index";
    const place = `${item.place},"${index}":${item.parts.length}`;
    const part: OpenPart = { kind, text: "", logprobs: [], place };
    item.parts.push(part);
    this.#partEvent("added", part);
    return part;
  }

  #openItem(type: OpenItem["type"], sealed: SealedThought = {}): OpenItem {
    const item: OpenItem = { ...this.#newItem(type), type, parts: [], sealed };
    this.#current = item;
    this.#itemEvent("added", item, this.#bodyOf(item, "in_progress"));
    return item;
  }

  /** Ends what ends when another item begins: the current one, and calls that can have no more text. */
  #newItem(kind: ItemKind): ItemPlace {
    this.#closeCurrent("completed");
    for (const [key, call] of this.#calls) {
      if (call.kind === "custom" || !isWholeInput(call.text)) continue;
      this.#calls.delete(key);
      this.#callDone(call, "completed");
    }
    if (kind !== "reasoning") this.#isAnswered = true;
    const index = this.#output.push(undefined) - 1;
    const id = itemId(kind, index, this.#options);
    return { id, index, place: `"item_id":"${id}","output_index":${index}` };
  }

  #closeCurrent(status: ItemStatus): void {
    const item = this.#current;
    if (item === undefined) return;
    this.#current = undefined;
    const part = item.parts.at(-1);
    if (part !== undefined) this.#partDone(part);
    this.#itemDone(item, this.#bodyOf(item, status));
  }

  /** An answer that ends early does so in the item that began last. */
  #closeAll({ status }: Outcome): void {
    const last = this.#output.length - 1;
    for (const call of this.#calls.values()) {
      this.#callDone(call, call.index === last ? status : "completed");
    }
    this.#calls.clear();
    this.#closeCurrent(this.#current?.index === last ? status : "completed");
    if (status !== "completed" || this.#isAnswered) return;
    // Agents wait for a message or a call.
    this.#openPart("text");
    this.#closeCurrent(status);
  }

  #bodyOf({ id, type, parts, sealed }: OpenItem, status: ItemStatus): object {
    if (type === "message") return messageItem(id, status, parts);
    const { opaque, isRedacted } = sealed;
    return reasoningItem(id, { text: parts[0]?.text ?? "", opaque, isRedacted }, this.#options);
  }

  #callBody({ id, callId, kind, name, text }: OpenCall, status: ItemStatus) {
    return callItem(id, { id: callId, kind, name, arguments: text, status }, this.#options);
  }

  #callDone(call: OpenCall, status: ItemStatus): void {
    const body = this.#callBody(call, status);
    this.#textDone(call, call.kind === "function" ? `,"name":${JSON.stringify(body.name)}` : "");
    this.#itemDone(call, body);
  }

  #partDone(part: OpenPart): void {
    const { kind, logprobs } = part;
    this.#textDone(part, logprobsField(kind, logprobs));
    this.#partEvent("done", part);
  }

  #partEvent(event: "added" | "done", part: OpenPart): void {
    const name = part.kind === "summary" ? "reasoning_summary_part" : "content_part";
    const body = JSON.stringify(partBody(part));
    this.#frame(`response.${name}.${event}`, `${part.place},"part":${body}`);
  }

  /** `beside`: more fields of the event, as JSON after a comma. */
  #grow(text: GrowingText, delta: string, beside = ""): void {
    text.text += delta;
    const fields = `${text.place},"delta":${writeJsonText(delta)}${beside}`;
    this.#frame(`response.${texts[text.kind].name}.delta`, fields);
  }

  #textDone({ kind, place, text }: GrowingText, beside: string): void {
    const { name, field } = texts[kind];
    this.#frame(`response.${name}.done`, `${place},"${field}":${writeJsonText(text)}${beside}`);
  }

  #itemDone(item: ItemPlace, body: object): void {
    this.#output[item.index] = body;
    this.#itemEvent("done", item, body);
  }

  #itemEvent(event: "added" | "done", { index }: ItemPlace, body: object): void {
    const fields = `"output_index":${index},"item":${JSON.stringify(body)}`;
    this.#frame(`response.output_item.${event}`, fields);
  }

  #last(type: string, state: Partial<ResponseState>): string {
    this.#response(type, state);
    return this.take();
  }

  #response(type: string, state: Partial<ResponseState>): void {
    const written = `${JSON.stringify(this.#fields(state)).slice(0, -1)},${this.#echo}}`;
    this.#frame(type, `"response":${written}`);
  }

  #fields(state: Partial<ResponseState>): JsonObject {
    return responseFields(this.#options, {
      output: this.#output.filter((body) => body !== undefined),
      serviceTier: this.serviceTier,
      ...state,
    });
  }

  /** `fields` are those of the event as JSON without braces. */
  #frame(type: string, fields: string): void {
    const number = this.#sequence;
    this.#sequence += 1;
    this.frames += `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${fields}}\n\n`;
  }
}

/** The names of events of texts that grow, and the field that has the whole text at the end. */
const texts = {
  text: { name: "output_text", field: "text" },
  refusal: { name: "refusal", field: "refusal" },
  summary: { name: "reasoning_summary_text", field: "text" },
  function: { name: "function_call_arguments", field: "arguments" },
  custom: { name: "custom_tool_call_input", field: "input" },
} as const satisfies Record<Part["kind"] | ToolKind, object>;

/** Only texts have the field. */
function logprobsField(kind: Part["kind"], logprobs: readonly unknown[]): string {
  if (kind !== "text") return "";
  return logprobs.length === 0 ? ',"logprobs":[]' : `,"logprobs":${JSON.stringify(logprobs)}`;
}

interface ItemPlace {
  readonly id: string;
  readonly index: number;
  /** The fields that name it in events, as JSON. */
  readonly place: string;
}

interface GrowingText {
  readonly kind: keyof typeof texts;
  text: string;
  readonly place: string;
}

interface OpenPart extends Part {
  readonly logprobs: unknown[];
  readonly place: string;
}

type SealedThought = Pick<AnswerReasoning, "opaque" | "isRedacted">;

/** A message, or a thought with at most one part. */
interface OpenItem extends ItemPlace {
  readonly type: "message" | "reasoning";
  readonly parts: OpenPart[];
  sealed: SealedThought;
}

interface OpenCall extends ItemPlace {
  readonly kind: ToolKind;
  readonly callId: string;
  readonly name: string;
  text: string;
}
