import type {
  ChatMessage,
  ContentPart,
  RequestToolCall,
} from "../../../domain/chat/conversation.ts";
import {
  isObject,
  type JsonObject,
  nonEmpty,
  objectOf,
  textOf,
} from "../../../domain/json-fields.ts";
import {
  AttachmentLimits,
  type DocumentContext,
  DocumentNames,
  encodeInputPart,
} from "./content.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { type Adjustments, isBlank, unsupported } from "./adjustments.ts";
import { finishTurns, repairTurns, Turns, withFirstWords } from "./turns.ts";
import type {
  CachePoint,
  ImageBlock,
  ResultBlock,
  SystemBlock,
  TextBlock,
  Turn,
} from "./converse-body.ts";
import { wantedCachePoint } from "./cache-points.ts";
import { sentThoughts } from "../thinking/sent-thoughts.ts";
import { ToolHistory } from "../tools/tool-history.ts";
import type { ToolNames } from "../tools/tool-names.ts";

export interface Conversation {
  readonly system: SystemBlock[];
  /** Begins with the user; user and assistant alternate. */
  readonly turns: readonly Turn[];
}

export interface ConversationContext {
  readonly model: BedrockModel;
  readonly names: ToolNames;
  /** Whether the request lets the model call tools. */
  readonly offersTools: boolean;
  /** Added after the caller's own instructions. */
  readonly instruction: string | undefined;
  readonly adjustments: Adjustments;
}

/** An image of a tool's result that the user's turn holds instead. */
interface MovedImage {
  readonly block: ImageBlock;
  readonly label: string;
  /** The path of its part in the request. */
  readonly partPath: string;
}

/** Converts messages to the provider's turns and separate instructions. */
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
  readonly #isRepaired: boolean;
  readonly #movesImages: boolean;
  #movedCount = 0;
  /** Those that wait for the end of the results. */
  #moved: MovedImage[] = [];
  /** The index in the system of the last instruction, if no assistant message follows it. */
  #lastInstruction: number | undefined;

  constructor(context: ConversationContext) {
    const { capabilities, settings } = context.model;
    this.#context = context;
    this.#isRepaired = settings.conversation === "repair";
    this.#attachments = { model: context.model, names: new DocumentNames() };
    // If results are written as text, their images belong to the user anyway.
    this.#movesImages = context.offersTools && !capabilities.toolResultImages;
    this.#turns = new Turns(capabilities);
    this.#limits = new AttachmentLimits(capabilities);
    this.#history = new ToolHistory(context.names, {
      nineCharacterToolIds: capabilities.nineCharacterToolIds,
      isText: !context.offersTools,
    });
  }

  /** `path` is the message's path in the request. */
  add(message: ChatMessage, path: string): void {
    switch (message.role) {
      case "system":
      case "developer":
        this.#addInstructions(message);
        return;
      case "tool":
      case "function":
        this.#addResult(message, path);
        return;
      case "user":
        this.#endResults();
        this.#addUser(message, path);
        return;
      case "assistant":
        this.#endResults();
        this.#addAssistant(message, path);
        return;
    }
  }

  finish(): Conversation {
    this.#endResults();
    const { model, instruction } = this.#context;
    const { list: turns, isUserSilent } = this.#turns;
    const system = this.#system;
    const lastInstruction = this.#lastInstruction;
    if (this.#isRepaired) repairTurns({ system, turns, lastInstruction, isUserSilent });
    if (instruction !== undefined) system.push({ text: instruction });
    finishTurns(turns, model.capabilities);
    if (model.capabilities.system) return { system, turns: withFirstWords(turns, []) };
    // A model without system instructions gets them at the beginning of the first turn.
    return { system: [], turns: withFirstWords(turns, system) };
  }

  /** Instructions at any position: the provider accepts them only for the whole conversation. */
  #addInstructions(message: ChatMessage): void {
    const begin = this.#system.length;
    for (const part of partsOf(message)) {
      const text = textOfPart(part);
      if (isBlank(text)) continue;
      this.#system.push({ text });
      this.#markSystem(part);
    }
    this.#markSystem(message);
    if (this.#system.length > begin) this.#lastInstruction = begin;
  }

  #addResult(message: ChatMessage, path: string): void {
    const parts = partsOf(message);
    const kept: (readonly [ResultBlock, string])[] = [];
    parts.forEach((part, index) => {
      const partPath = `${path}.content[${index}]`;
      const block = encodeInputPart(part, this.#attachments, partPath);
      if (block === undefined) return;
      const isMoved = this.#movesImages && "image" in block;
      kept.push([isMoved ? this.#move(block, partPath) : block, partPath]);
    });
    const content = kept.map(([block]) => block);
    const results =
      message.role === "function"
        ? this.#history.functionResult(content, path)
        : this.#history.result(message.tool_call_id ?? "", content, path);
    for (const result of results) this.#turns.add("user", result);
    for (const [block, partPath] of kept) this.#limits.count(block, this.#turns.last, partPath);
    for (const holder of [...parts, message]) this.#mark(holder);
  }

  /** Returns what stands in the result: some models take images from the user alone. */
  #move(block: ImageBlock, partPath: string): TextBlock {
    this.#movedCount += 1;
    const label = `tool image ${this.#movedCount}`;
    this.#moved.push({ block, label, partPath });
    this.#context.adjustments.sendAs("messages", "tool-images-moved");
    return { text: `[This image follows the tool results as ${label}.]` };
  }

  /** Call before anything but a result: what was moved comes after all results of the turn. */
  #endResults(): void {
    this.#history.checkAnswered();
    for (const { block, label, partPath } of this.#moved) {
      this.#turns.add("user", { text: `[${label}:]` });
      this.#turns.add("user", block);
      this.#limits.count(block, this.#turns.last, partPath);
    }
    this.#moved = [];
  }

  #addUser(message: ChatMessage, path: string): void {
    let isSilent = true;
    partsOf(message).forEach((part, index) => {
      const partPath = `${path}.content[${index}]`;
      const block = encodeInputPart(part, this.#attachments, partPath);
      if (block === undefined) return;
      isSilent = false;
      this.#turns.add("user", block);
      this.#limits.count(block, this.#turns.last, partPath);
      this.#mark(part);
    });
    if (!isSilent) this.#mark(message);
    else if (this.#isRepaired) this.#turns.addSilence();
  }

  /** Thoughts come first, and only if text or calls follow them. */
  #addAssistant(message: ChatMessage, path: string): void {
    const words = this.#wordsOf(message);
    const calls = message.tool_calls ?? [];
    const functionCall = objectOf(message["function_call"]);
    const isSilent = words.length === 0 && calls.length === 0 && functionCall === undefined;
    if (!isSilent) this.#lastInstruction = undefined;
    if (isSilent && isObject(message["audio"])) {
      throw unsupported(
        `${path}.audio`,
        `${path}: spoken answers cannot be sent back to this model. Send their text.`,
      );
    }
    if (!isSilent) {
      const { thoughtSeal } = this.#context.model;
      for (const block of sentThoughts(message, thoughtSeal)) this.#turns.add("assistant", block);
    }
    for (const part of words) {
      this.#turns.add("assistant", { text: textOfPart(part) });
      this.#mark(part);
    }
    calls.forEach((call, index) => {
      const block = this.#history.call(call.id, callOf(call), `${path}.tool_calls[${index}]`);
      this.#turns.add("assistant", block);
    });
    if (functionCall !== undefined) {
      const call = functionCallOf(functionCall);
      this.#turns.add("assistant", this.#history.functionCall(call, path));
    }
    if (!isSilent) this.#mark(message);
  }

  /** The parts that are not empty. */
  #wordsOf(message: ChatMessage): readonly ContentPart[] {
    const refusal = nonEmpty(message["refusal"]);
    const parts: readonly ContentPart[] =
      refusal === undefined
        ? partsOf(message)
        : [...partsOf(message), { type: "refusal", refusal }];
    return parts.filter((part) => !isBlank(textOfPart(part)));
  }

  /** Adds the cache point that a message or a part requests after its last block. */
  #mark(holder: ChatMessage | ContentPart): void {
    this.#turns.addCachePoint(this.#pointOf(holder));
  }

  #markSystem(holder: ChatMessage | ContentPart): void {
    const point = this.#pointOf(holder);
    const last = this.#system.at(-1);
    if (point !== undefined && last !== undefined && !("cachePoint" in last)) {
      this.#system.push(point);
    }
  }

  #pointOf(holder: ChatMessage | ContentPart): CachePoint | undefined {
    return wantedCachePoint(holder, this.#context.model.capabilities);
  }
}

function partsOf({ content }: ChatMessage): readonly ContentPart[] {
  if (content === undefined || content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** Messages that are not the user's have no other parts. */
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
