import type { ChatMessage, ContentPart, RequestToolCall } from "../../domain/chat.ts";
import { isObject, nonEmpty, objectOf, textOf, type JsonObject } from "../shared/json-fields.ts";
import { AttachmentLimits } from "./attachment-limits.ts";
import type { BedrockModel } from "./bedrock-model.ts";
import { isBlank } from "./blank-text.ts";
import { repairTurns, withFirstWords } from "./conversation/repair-turns.ts";
import { cachePoint, type SystemBlock, type TextBlock, type Turn } from "./converse-body.ts";
import { DocumentNames } from "./document-names.ts";
import { encodeUserPart } from "./encode-user-part.ts";
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
  readonly #documents = new DocumentNames();
  readonly #limits: AttachmentLimits;
  readonly #isRepaired: boolean;
  /** Where in the system the last instruction begins, if the assistant has said nothing since. */
  #lastInstruction: number | undefined;

  constructor(context: ConversationContext) {
    const { capabilities, settings } = context.model;
    this.#context = context;
    this.#isRepaired = settings.conversation === "repair";
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
    const { list: turns, isUserSilent } = this.#turns;
    const system = this.#system;
    const lastInstruction = this.#lastInstruction;
    if (this.#isRepaired) repairTurns({ system, turns, lastInstruction, isUserSilent });
    if (instruction !== undefined) system.push({ text: instruction });
    finishTurns(turns, model.capabilities);
    // Without instructions of their own, they are the first words that the model reads.
    const finished = model.capabilities.system
      ? { system, turns: withFirstWords(turns, []) }
      : { system: [], turns: withFirstWords(turns, system) };
    limitCachePoints([finished.system, ...finished.turns.map(({ content }) => content)]);
    return finished;
  }

  /** Wherever they stand: the provider takes instructions for the whole conversation only. */
  #addInstructions(message: ChatMessage): void {
    const begin = this.#system.length;
    for (const part of partsOf(message)) {
      const text = textOfPart(part);
      if (isBlank(text)) continue;
      this.#system.push({ text });
      if (this.#isBreakpoint(part)) this.#system.push(cachePoint);
    }
    if (this.#system.length > begin) this.#lastInstruction = begin;
  }

  #addResult(message: ChatMessage, place: string): void {
    const parts = partsOf(message);
    const texts = parts.map(textOfPart);
    const result =
      message.role === "function"
        ? this.#history.functionResult(texts, place)
        : this.#history.result(message.tool_call_id ?? "", texts, place);
    this.#turns.add("user", result);
    if (parts.some((part) => this.#isBreakpoint(part))) this.#turns.addCachePoint();
  }

  #addUser(message: ChatMessage, place: string): void {
    const context = { model: this.#context.model, names: this.#documents };
    let isSilent = true;
    partsOf(message).forEach((part, index) => {
      const partPlace = `${place}.content[${index}]`;
      const block = encodeUserPart(part, context, partPlace);
      if (block === undefined) return;
      isSilent = false;
      this.#turns.add("user", block);
      this.#limits.count(block, this.#turns.last, partPlace);
      if (this.#isBreakpoint(part)) this.#turns.addCachePoint();
    });
    if (isSilent && this.#isRepaired) this.#turns.addSilence();
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
    if (!isSilent) this.#lastInstruction = undefined;
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
