import type { ChatMessage, ContentPart, RequestToolCall } from "../../domain/chat.ts";
import { isObject, nonEmpty, objectOf, textOf, type JsonObject } from "../shared/json-fields.ts";
import { AttachmentLimits } from "./attachment-limits.ts";
import type { BedrockModel } from "./bedrock-model.ts";
import { isBlank } from "./blank-text.ts";
import { cachePoint, type SystemBlock, type TextBlock, type Turn } from "./converse-body.ts";
import { DocumentNames } from "./document-names.ts";
import type { DocumentContext } from "./encode-document.ts";
import { encodeInputPart } from "./encode-input-part.ts";
import { finishTurns } from "./finish-turns.ts";
import { limitCachePoints } from "./limit-cache-points.ts";
import { unsupported } from "./refusal.ts";
import { ToolHistory } from "./tool-history.ts";
import type { ToolNames } from "./tool-names.ts";
import { Turns } from "./turns.ts";

export interface Conversation {
  readonly system: readonly SystemBlock[];
  /** Begins with the user; user and assistant alternate. */
  readonly turns: readonly Turn[];
}

export interface ConversationContext {
  readonly model: BedrockModel;
  readonly names: ToolNames;
  /** Whether the request lets the model call tools. */
  readonly offersTools: boolean;
  /** Stands behind the caller's own instructions. */
  readonly instruction: string | undefined;
}

/** Messages as the provider's turns, their instructions apart. */
export function encodeConversation(
  messages: readonly ChatMessage[],
  context: ConversationContext,
): Conversation {
  const encoder = new ConversationEncoder(context);
  messages.forEach((message, index) => {
    encoder.add(message, `messages[${index}]`);
  });
  return encoder.finish();
}

class ConversationEncoder {
  readonly #context: ConversationContext;
  readonly #system: SystemBlock[] = [];
  readonly #turns: Turns;
  readonly #history: ToolHistory;
  readonly #attachments: DocumentContext;
  readonly #limits: AttachmentLimits;

  constructor(context: ConversationContext) {
    const { capabilities } = context.model;
    this.#context = context;
    this.#attachments = { model: context.model, names: new DocumentNames() };
    this.#turns = new Turns(capabilities);
    this.#limits = new AttachmentLimits(capabilities);
    this.#history = new ToolHistory(context.names, {
      nineCharacterToolIds: capabilities.nineCharacterToolIds,
      isText: !context.offersTools,
    });
  }

  /** `place` is the message's path in the request. */
  add(message: ChatMessage, place: string): void {
    switch (message.role) {
      case "system":
      case "developer":
        this.#addInstructions(message);
        return;
      case "tool":
      case "function":
        this.#addResult(message, place);
        return;
      case "user":
        this.#history.checkAnswered();
        this.#addUser(message, place);
        return;
      case "assistant":
        this.#history.checkAnswered();
        this.#addAssistant(message, place);
        return;
    }
  }

  finish(): Conversation {
    this.#history.checkAnswered();
    const { model, instruction } = this.#context;
    if (instruction !== undefined) this.#system.push({ text: instruction });
    const turns = this.#turns.list;
    finishTurns(turns, model.capabilities);
    if (model.capabilities.system) {
      limitCachePoints([this.#system, ...turns.map(({ content }) => content)]);
      return { system: this.#system, turns };
    }
    // Without instructions of their own, they are the first words that the model reads.
    const joined = turns.map(({ role, content }, index) => ({
      role,
      content: index === 0 ? [...this.#system, ...content] : content,
    }));
    limitCachePoints(joined.map(({ content }) => content));
    return { system: [], turns: joined };
  }

  /** Wherever they stand: the provider takes instructions for the whole conversation only. */
  #addInstructions(message: ChatMessage): void {
    for (const part of partsOf(message)) {
      const text = textOfPart(part);
      if (isBlank(text)) continue;
      this.#system.push({ text });
      if (this.#isBreakpoint(part)) this.#system.push(cachePoint);
    }
  }

  #addResult(message: ChatMessage, place: string): void {
    const parts = partsOf(message);
    const blocks = parts.map((part, index) => {
      const partPlace = `${place}.content[${index}]`;
      this.#checkResultPart(part, partPlace);
      return { partPlace, block: encodeInputPart(part, this.#attachments, partPlace) };
    });
    const content = blocks.flatMap(({ block }) => (block === undefined ? [] : [block]));
    const results =
      message.role === "function"
        ? this.#history.functionResult(content, place)
        : this.#history.result(message.tool_call_id ?? "", content, place);
    for (const result of results) this.#turns.add("user", result);
    for (const { block, partPlace } of blocks) {
      if (block !== undefined) this.#limits.count(block, this.#turns.last, partPlace);
    }
    if (parts.some((part) => this.#isBreakpoint(part))) this.#turns.addCachePoint();
  }

  #checkResultPart(part: ContentPart, place: string): void {
    const { model, offersTools } = this.#context;
    const { images, toolResultImages } = model.capabilities;
    // Where results are told in words, their images are the user's.
    if (part.type !== "image_url" || !images || toolResultImages || !offersTools) return;
    throw unsupported(
      place,
      `${place}: this model takes no images in results of tools. Send the image in a message of ` +
        "the user behind them, or describe it.",
    );
  }

  #addUser(message: ChatMessage, place: string): void {
    partsOf(message).forEach((part, index) => {
      const partPlace = `${place}.content[${index}]`;
      const block = encodeInputPart(part, this.#attachments, partPlace);
      if (block === undefined) return;
      this.#turns.add("user", block);
      this.#limits.count(block, this.#turns.last, partPlace);
      if (this.#isBreakpoint(part)) this.#turns.addCachePoint();
    });
  }

  /** Reasoning that comes back stays out: without its signature the provider refuses it. */
  #addAssistant(message: ChatMessage, place: string): void {
    const said = this.#addWords(message);
    const calls = message.tool_calls ?? [];
    calls.forEach((call, index) => {
      const block = this.#history.call(call.id, callOf(call), `${place}.tool_calls[${index}]`);
      this.#turns.add("assistant", block);
    });
    const functionCall = objectOf(message["function_call"]);
    if (functionCall !== undefined) {
      const call = functionCallOf(functionCall);
      this.#turns.add("assistant", this.#history.functionCall(call, place));
    }
    const isSilent = !said && calls.length === 0 && functionCall === undefined;
    if (isSilent && isObject(message["audio"])) {
      throw unsupported(
        `${place}.audio`,
        `${place}: spoken answers cannot be sent back to this model. Send their text.`,
      );
    }
  }

  /** Whether there were any. */
  #addWords(message: ChatMessage): boolean {
    let isAny = false;
    const refusal = nonEmpty(message["refusal"]);
    const parts: readonly ContentPart[] =
      refusal === undefined
        ? partsOf(message)
        : [...partsOf(message), { type: "refusal", refusal }];
    for (const part of parts) {
      const text = textOfPart(part);
      if (isBlank(text)) continue;
      isAny = true;
      this.#turns.add("assistant", { text });
      if (this.#isBreakpoint(part)) this.#turns.addCachePoint();
    }
    return isAny;
  }

  /** A hint about cost: models that keep no prompts answer the same without. */
  #isBreakpoint(part: ContentPart): boolean {
    return (
      this.#context.model.capabilities.promptCaching &&
      "prompt_cache_breakpoint" in part &&
      isObject(part.prompt_cache_breakpoint)
    );
  }
}

function partsOf({ content }: ChatMessage): readonly ContentPart[] {
  if (content === undefined || content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** Messages that are not the user's hold no other parts. */
function textOfPart(part: ContentPart): TextBlock["text"] {
  if (part.type === "text") return part.text;
  return part.type === "refusal" ? part.refusal : "";
}

function callOf(call: RequestToolCall): Parameters<ToolHistory["call"]>[1] {
  return call.type === "custom"
    ? { kind: "custom", name: call.custom.name, input: call.custom.input }
    : { kind: "function", name: call.function.name, input: call.function.arguments };
}

function functionCallOf(call: JsonObject): Parameters<ToolHistory["functionCall"]>[0] {
  return {
    kind: "function",
    name: textOf(call["name"]) ?? "",
    input: textOf(call["arguments"]) ?? "",
  };
}
