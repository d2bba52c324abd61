import { isWholeInput } from "../../domain/chat/tool-input.ts";
import type {
  AnswerReasoning,
  ChatEvent,
  FinishReason,
  TokenLogprobs,
} from "../../domain/chat/answer.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { JsonObject } from "../../domain/json-fields.ts";
import { writeJsonText } from "../../domain/json-object.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { keepAliveComment } from "../../edge/replies/event-stream.ts";
import type { HeldResponse } from "../../idempotency/stored-responses.ts";
import type { ChatWriter } from "../chat-frames.ts";
import {
  type Call,
  type Item,
  type ItemBase,
  type Message,
  type OpenPart,
  placeOf,
  type Thought,
} from "./open-items.ts";
import {
  callItem,
  itemId,
  type ItemOptions,
  type ItemStatus,
  messageItem,
  type MessagePart,
  partBody,
  reasoningItem,
} from "./output-items.ts";
import { type Outcome, outcomeOf, responseFields, type ResponseState } from "./response-object.ts";
import { bodyText } from "./stored-input.ts";

export interface ResponseEventOptions extends ItemOptions {
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** The alias that serves. */
  readonly model: string;
  readonly askedTier: string;
  /** The fields that repeat the request. */
  readonly echo: JsonObject;
  /** Undefined: the response is not stored. */
  readonly held: HeldResponse | undefined;
  /** The time, in Unix seconds. */
  readonly now: () => number;
}

/**
 * Writes events as those of `POST /v1/responses`. Every item and part is added and done, since the
 * helpers of OpenAI's clients throw on gaps. Source: `ResponseStreamEvent` in OpenAI's document.
 */
export class ResponseEventWriter implements ChatWriter {
  readonly #options: ResponseEventOptions;
  /** The fields that repeat the request, as JSON without braces. */
  readonly #echo: string;
  #sequence = 0;
  #isBegun = false;
  /** Items in the order of their beginning. Calls stay open beside others until the end. */
  readonly #items: Item[] = [];
  /** The message or thought that grows. */
  #current: Message | Thought | undefined;
  readonly #calls = new Map<number, Call>();
  #finishReason: FinishReason | undefined;
  #hasRefusal = false;
  #serviceTier: string | undefined;

  constructor(options: ResponseEventOptions) {
    this.#options = options;
    this.#echo = JSON.stringify(options.echo).slice(1, -1);
  }

  write(events: readonly ChatEvent[]): string {
    let frames = this.#begin();
    for (const event of events) frames += this.#writeEvent(event);
    return frames;
  }

  /** Helpers of OpenAI's clients throw on any event before the first of a response. */
  keepAlive(): string {
    return this.#isBegun ? 'event: keepalive\ndata: {"type":"keepalive"}\n\n' : keepAliveComment;
  }

  end(usage: TokenUsage): string | Promise<string> {
    const { held, now, echo, encrypted } = this.#options;
    const outcome = this.#outcome();
    const closing = this.#begin() + this.#closeAll(outcome);
    const state = { outcome, usage, completedAt: now() };
    const type = `response.${outcome.status}`;
    if (held === undefined) return closing + this.#response(type, state);
    const response = { ...this.#fields(state), ...echo };
    return held
      .keep(bodyText(response, encrypted))
      .then((isStored) => closing + this.#response(type, { ...state, isStored }));
  }

  cancel(): void {
    this.#options.held?.release();
  }

  /** Clients look at different ones of the two events: some see only errors, Codex only failures. */
  fail(error: GatewayError): string {
    this.cancel();
    const shown = error.toBody().error;
    const body = JSON.stringify({ ...shown, code: shown.code ?? shown.type });
    return this.#begin() + this.#frame("error", `"error":${body}`) + this.#failed(error);
  }

  #failed(error: GatewayError): string {
    return this.#response("response.failed", { error, isStored: false });
  }

  #writeEvent(event: ChatEvent): string {
    switch (event.type) {
      case "text-delta":
        return event.text === "" ? "" : this.#partDelta("text", event.text, event.logprobs);
      case "refusal-delta":
        this.#hasRefusal = true;
        return this.#partDelta("refusal", event.text, event.logprobs);
      case "reasoning-delta":
        return event.text === "" ? "" : this.#thoughtDelta(event.text);
      case "reasoning-block":
        return this.#thoughtEnd(event.content);
      case "tool-call-start":
        return this.#callStart(event);
      case "tool-call-delta":
        return this.#callDelta(event.call, event.arguments);
      case "choice-finish":
        this.#finishReason = event.finishReason;
        return this.#closeAll(this.#outcome());
      case "answer-start":
        this.#serviceTier = event.serviceTier;
        return "";
      // Calls of the deprecated `functions`: a request of this wire has none.
      case "function-call-start":
      case "function-call-delta":
      case "usage-report":
      case "usage-start":
        return "";
    }
  }

  #outcome(): Outcome {
    return outcomeOf(this.#finishReason, this.#hasRefusal);
  }

  #begin(): string {
    if (this.#isBegun) return "";
    this.#isBegun = true;
    return this.#response("response.created", {}) + this.#response("response.in_progress", {});
  }

  #partDelta(type: MessagePart["type"], text: string, logprobs: TokenLogprobs = []): string {
    const frames = this.#openPart(type);
    const part = this.#part;
    if (part === undefined) return frames;
    part.text += text;
    for (const each of logprobs) part.logprobs.push(each);
    const delta = `${part.place},"delta":${writeJsonText(text)}`;
    if (type === "refusal") return frames + this.#frame("response.refusal.delta", delta);
    const beside = logprobs.length === 0 ? "[]" : JSON.stringify(logprobs);
    return frames + this.#frame("response.output_text.delta", `${delta},"logprobs":${beside}`);
  }

  /** The part that grows. */
  get #part(): OpenPart | undefined {
    return this.#current?.type === "message" ? this.#current.parts.at(-1) : undefined;
  }

  /** Empty if a part of the type is open. */
  #openPart(type: MessagePart["type"]): string {
    const open = this.#part;
    if (open?.type === type) return "";
    let frames = open === undefined ? "" : this.#partDone(open);
    let message = this.#current;
    if (message?.type !== "message") {
      frames += this.#closeCurrent("completed") + this.#closeWholeCalls();
      message = this.#add<Message>({ ...this.#newItem("message"), type: "message", parts: [] });
      this.#current = message;
      frames += this.#itemEvent("added", message, messageItem(message.id, "in_progress", []));
    }
    const place = `${placeOf(message)},"content_index":${message.parts.length}`;
    const part: OpenPart = { type, text: "", logprobs: [], place };
    message.parts.push(part);
    const body = JSON.stringify(partBody(part));
    return frames + this.#frame("response.content_part.added", `${place},"part":${body}`);
  }

  #partDone(part: OpenPart): string {
    const { type, text, place } = part;
    const whole = writeJsonText(text);
    const done =
      type === "refusal"
        ? this.#frame("response.refusal.done", `${place},"refusal":${whole}`)
        : this.#frame(
            "response.output_text.done",
            `${place},"text":${whole},"logprobs":${JSON.stringify(part.logprobs)}`,
          );
    const body = JSON.stringify(partBody(part));
    return done + this.#frame("response.content_part.done", `${place},"part":${body}`);
  }

  #thoughtDelta(text: string): string {
    let frames = "";
    let thought = this.#current;
    if (thought?.type !== "reasoning") {
      frames = this.#closeCurrent("completed") + this.#closeWholeCalls();
      thought = this.#addThought();
      frames += this.#thoughtAdded(thought, {});
      const part = '"part":{"type":"summary_text","text":""}';
      frames += this.#frame("response.reasoning_summary_part.added", `${thought.place},${part}`);
    }
    thought.text += text;
    const delta = `${thought.place},"delta":${writeJsonText(text)}`;
    return frames + this.#frame("response.reasoning_summary_text.delta", delta);
  }

  /** The whole of a thought, whose text has been written already. */
  #thoughtEnd(content: AnswerReasoning): string {
    const { opaque, isRedacted, text } = content;
    const open = this.#current;
    if (open?.type === "reasoning") {
      open.opaque = opaque;
      open.isRedacted = isRedacted;
      return this.#closeCurrent("completed");
    }
    const before = text === "" ? "" : this.#thoughtDelta(text);
    if (before !== "") return before + this.#thoughtEnd(content);
    const frames = this.#closeCurrent("completed") + this.#closeWholeCalls();
    const thought = this.#addThought();
    thought.opaque = opaque;
    thought.isRedacted = isRedacted;
    return frames + this.#thoughtAdded(thought, content) + this.#closeCurrent("completed");
  }

  #addThought(): Thought {
    const item = this.#newItem("reasoning");
    const place = `${placeOf(item)},"summary_index":0`;
    const thought = this.#add<Thought>({ ...item, type: "reasoning", text: "", place });
    this.#current = thought;
    return thought;
  }

  #thoughtAdded(thought: Thought, content: Partial<AnswerReasoning>): string {
    const body = reasoningItem(thought.id, { ...content, text: "" }, this.#options);
    return this.#itemEvent("added", thought, body);
  }

  #callStart(event: Extract<ChatEvent, { type: "tool-call-start" }>): string {
    const before = this.#closeCurrent("completed") + this.#closeWholeCalls();
    const { kind, name } = event;
    const item = this.#newItem(kind);
    const about = { id: event.id, kind, name, arguments: "" };
    const call = this.#add<Call>({ ...item, type: "call", about });
    this.#calls.set(event.call, call);
    const body = callItem(call.id, { ...about, status: "in_progress" }, this.#options);
    return before + this.#itemEvent("added", call, body);
  }

  #callDelta(index: number, text: string): string {
    const call = this.#calls.get(index);
    if (call === undefined || text === "") return "";
    call.about.arguments += text;
    const type =
      call.about.kind === "custom"
        ? "response.custom_tool_call_input.delta"
        : "response.function_call_arguments.delta";
    return this.#frame(type, `${placeOf(call)},"delta":${writeJsonText(text)}`);
  }

  /** Ends the calls whose arguments can have no more text, before the next item begins. */
  #closeWholeCalls(): string {
    let frames = "";
    for (const [index, call] of this.#calls) {
      if (call.about.kind === "custom" || !isWholeInput(call.about.arguments)) continue;
      this.#calls.delete(index);
      frames += this.#callDone(call, "completed");
    }
    return frames;
  }

  #callDone(call: Call, status: ItemStatus): string {
    const { about } = call;
    const text = writeJsonText(about.arguments);
    const place = placeOf(call);
    const { name } = this.#options.grouped.get(about.name) ?? about;
    const done =
      about.kind === "custom"
        ? this.#frame("response.custom_tool_call_input.done", `${place},"input":${text}`)
        : this.#frame(
            "response.function_call_arguments.done",
            `${place},"arguments":${text},"name":${JSON.stringify(name)}`,
          );
    return done + this.#done(call, callItem(call.id, { ...about, status }, this.#options));
  }

  #closeCurrent(status: ItemStatus): string {
    const item = this.#current;
    this.#current = undefined;
    if (item === undefined) return "";
    if (item.type === "message") {
      const part = item.parts.at(-1);
      const before = part === undefined ? "" : this.#partDone(part);
      return before + this.#done(item, messageItem(item.id, status, item.parts));
    }
    const body = reasoningItem(item.id, item, this.#options);
    if (item.text === "") return this.#done(item, body);
    const text = `"text":${writeJsonText(item.text)}`;
    return (
      this.#frame("response.reasoning_summary_text.done", `${item.place},${text}`) +
      this.#frame(
        "response.reasoning_summary_part.done",
        `${item.place},"part":{"type":"summary_text",${text}}`,
      ) +
      this.#done(item, body)
    );
  }

  /** An answer that ends early does so in the item that began last. */
  #closeAll({ status }: Outcome): string {
    const last = this.#items.at(-1);
    const statusOf = (item: Item | undefined): ItemStatus => (item === last ? status : "completed");
    let frames = "";
    for (const call of this.#calls.values()) frames += this.#callDone(call, statusOf(call));
    this.#calls.clear();
    frames += this.#closeCurrent(statusOf(this.#current));
    const isAnswered = this.#items.some(({ type }) => type !== "reasoning");
    if (status !== "completed" || isAnswered) return frames;
    // Agents wait for a message or a call.
    return frames + this.#openPart("text") + this.#closeCurrent(status);
  }

  #newItem(kind: Parameters<typeof itemId>[0]): ItemBase {
    const index = this.#items.length;
    return { id: itemId(kind, index, this.#options), index, body: undefined };
  }

  #add<Added extends Item>(item: Added): Added {
    this.#items.push(item);
    return item;
  }

  #done(item: Item, body: object): string {
    item.body = body;
    return this.#itemEvent("done", item, body);
  }

  #itemEvent(event: "added" | "done", { index }: Item, body: object): string {
    const fields = `"output_index":${index},"item":${JSON.stringify(body)}`;
    return this.#frame(`response.output_item.${event}`, fields);
  }

  #response(type: string, state: Partial<ResponseState>): string {
    const written = `${JSON.stringify(this.#fields(state)).slice(0, -1)},${this.#echo}}`;
    return this.#frame(type, `"response":${written}`);
  }

  #fields(state: Partial<ResponseState>): JsonObject {
    const { id, createdAt, model, askedTier, held } = this.#options;
    return responseFields({
      id,
      createdAt,
      model,
      outcome: undefined,
      output: this.#items.flatMap((item) => item.body ?? []),
      serviceTier: this.#serviceTier ?? askedTier,
      isStored: held !== undefined,
      ...state,
    });
  }

  /** `fields` are those of the event as JSON without braces. */
  #frame(type: string, fields: string): string {
    const number = this.#sequence;
    this.#sequence += 1;
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${fields}}\n\n`;
  }
}
