import {
  type Block,
  type CacheMark,
  type Conversation,
  fieldOf,
  type ReasoningBlock,
  type ToolResultBlock,
  type Turn,
} from "../../../domain/chat/conversation.ts";
import { AttachmentLimits, DocumentNames, encodeInput, type InputContext } from "./content.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { type Adjustments, isBlank, unsupported } from "./adjustments.ts";
import { finishTurns, repairTurns, Turns, withFirstWords } from "./turns.ts";
import type {
  CachePoint,
  ImageBlock,
  ReasoningContentBlock,
  ResultBlock,
  SystemBlock,
  TextBlock,
  Turn as WireTurn,
} from "./converse-body.ts";
import { cachePointFor } from "./cache-points.ts";
import { sentThought } from "../thinking/sent-thoughts.ts";
import { ToolHistory } from "../tools/tool-history.ts";
import type { ToolNames } from "../tools/tool-names.ts";

export interface EncodedConversation {
  readonly system: SystemBlock[];
  /** Begins with the user; user and assistant alternate. */
  readonly turns: readonly WireTurn[];
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
  readonly at: string;
}

/** Converts turns to the provider's and separate instructions. */
export function encodeConversation(
  request: Conversation,
  context: ConversationContext,
): EncodedConversation {
  const encoder = new ConversationEncoder(request, context);
  for (const turn of request.turns) encoder.add(turn);
  return encoder.finish();
}

class ConversationEncoder {
  readonly #request: Conversation;
  readonly #context: ConversationContext;
  readonly #system: SystemBlock[] = [];
  readonly #turns: Turns;
  readonly #history: ToolHistory;
  readonly #inputs: InputContext;
  readonly #limits: AttachmentLimits;
  readonly #isRepaired: boolean;
  readonly #movesImages: boolean;
  #movedCount = 0;
  /** Those that wait for the end of the results. */
  #moved: MovedImage[] = [];
  /** Later instructions that wait for the same. */
  #later: TextBlock[] = [];
  /** Thoughts that are sent only if more of the assistant's turn follows. */
  #thoughts: ReasoningContentBlock[] = [];
  /** The index in the system of the last instruction, if no assistant turn follows it. */
  #lastInstruction: number | undefined;

  constructor(request: Conversation, context: ConversationContext) {
    const { model, names, offersTools } = context;
    const { capabilities, settings, family } = model;
    this.#request = request;
    this.#context = context;
    this.#isRepaired = settings.conversation === "repair";
    this.#inputs = {
      wire: request.wire,
      model,
      names: new DocumentNames(),
      onForeign: () => this.#adjust("server-blocks-dropped"),
    };
    // If results are written as text, their images belong to the user anyway.
    this.#movesImages = offersTools && !capabilities.toolResultImages;
    this.#turns = new Turns(capabilities);
    this.#limits = new AttachmentLimits(capabilities);
    this.#history = new ToolHistory(request, names, {
      nineCharacterToolIds: capabilities.nineCharacterToolIds,
      isText: !offersTools,
      hasErrorStatus: readsErrorStatus.test(family),
    });
  }

  add(turn: Turn): void {
    switch (turn.role) {
      case "system":
      case "developer":
        this.#addInstructions(turn);
        return;
      case "user":
        this.#addUser(turn);
        return;
      case "assistant":
        this.#endResults();
        this.#addAssistant(turn);
        return;
    }
  }

  finish(): EncodedConversation {
    this.#endResults();
    const { model, instruction } = this.#context;
    const { list: turns, isUserSilent } = this.#turns;
    const system = this.#system;
    const lastInstruction = this.#lastInstruction;
    if (this.#isRepaired) repairTurns({ system, turns, lastInstruction, isUserSilent });
    if (instruction !== undefined) system.push({ text: instruction });
    finishTurns(turns, fieldOf(this.#request, "turns"), model.capabilities);
    if (model.capabilities.system) return { system, turns: withFirstWords(turns, []) };
    // A model without system instructions gets them at the beginning of the first turn.
    return { system: [], turns: withFirstWords(turns, system) };
  }

  /**
   * The provider accepts instructions only for the whole conversation. Chat's all become part of
   * them. Later ones of other callers stay in place, as tagged words of the user: moved, they would
   * change what comes before thoughts that the model has signed.
   */
  #addInstructions({ blocks, cacheMark }: Turn): void {
    const isLater = this.#request.wire !== "chat" && this.#turns.last !== undefined;
    const begin = this.#system.length;
    for (const block of blocks) {
      const text = wordsOf(block);
      if (isBlank(text)) continue;
      if (isLater) {
        this.#later.push({ text: `<system>\n${text}\n</system>` });
        continue;
      }
      this.#system.push({ text });
      this.#markSystem(block.cacheMark);
    }
    if (isLater) {
      if (!this.#history.isOpen) this.#addLater();
      return;
    }
    this.#markSystem(cacheMark);
    if (this.#system.length > begin) this.#lastInstruction = begin;
  }

  /** Results come first, wherever they stand in the turn. */
  #addUser({ blocks, cacheMark }: Turn): void {
    this.#thoughts = [];
    let isSilent = true;
    for (const block of blocks) {
      if (block.type !== "tool-result") continue;
      isSilent = false;
      this.#addResult(block);
    }
    if (isSilent || blocks.some(({ type }) => type !== "tool-result")) this.#endResults();
    for (const block of blocks) {
      if (block.type === "tool-result") continue;
      for (const input of encodeInput(block, this.#inputs)) {
        isSilent = false;
        this.#turns.add("user", input);
        this.#limits.count(input, this.#turns.last, block.at);
        this.#mark(block.cacheMark);
      }
    }
    if (!isSilent) this.#mark(cacheMark);
    else if (this.#isRepaired) this.#turns.addSilence();
  }

  #addResult(result: ToolResultBlock): void {
    const kept: (readonly [ResultBlock, string])[] = [];
    for (const part of result.content) {
      for (const block of encodeInput(part, this.#inputs)) {
        const isMoved = this.#movesImages && "image" in block;
        kept.push([isMoved ? this.#move(block, part.at) : block, part.at]);
      }
    }
    const content = kept.map(([block]) => block);
    for (const block of this.#history.result(result, content)) this.#turns.add("user", block);
    for (const [block, at] of kept) this.#limits.count(block, this.#turns.last, at);
    for (const { cacheMark } of [...result.content, result]) this.#mark(cacheMark);
  }

  /** Returns what stands in the result: some models take images from the user alone. */
  #move(block: ImageBlock, at: string): TextBlock {
    this.#movedCount += 1;
    const label = `tool image ${this.#movedCount}`;
    this.#moved.push({ block, label, at });
    this.#adjust("tool-images-moved");
    return { text: `[This image follows the tool results as ${label}.]` };
  }

  /** Call before anything but a result: what was moved comes after all results of the turn. */
  #endResults(): void {
    this.#history.checkAnswered();
    for (const { block, label, at } of this.#moved) {
      this.#turns.add("user", { text: `[${label}:]` });
      this.#turns.add("user", block);
      this.#limits.count(block, this.#turns.last, at);
    }
    this.#moved = [];
    this.#addLater();
  }

  #addLater(): void {
    for (const block of this.#later) this.#turns.add("user", block);
    if (this.#later.length > 0) this.#thoughts = [];
    this.#later = [];
  }

  /** Blocks stay in their order. */
  #addAssistant({ blocks, cacheMark, at }: Turn): void {
    const isSilent = blocks.every(isSilentBlock);
    const spoken = blocks.find(({ type }) => type === "spoken");
    if (isSilent && spoken !== undefined) {
      throw unsupported(
        spoken.at,
        `${at}: spoken answers cannot be sent back to this model. Send their text.`,
      );
    }
    if (!isSilent) this.#lastInstruction = undefined;
    for (const block of blocks) this.#addAnswered(block);
    if (!isSilent) this.#mark(cacheMark);
  }

  #addAnswered(block: Block): void {
    switch (block.type) {
      case "reasoning":
        this.#addThought(block);
        return;
      case "text":
      case "refusal":
        if (isBlank(block.text)) return;
        this.#addSpoken({ text: block.text });
        break;
      case "tool-call":
        this.#addSpoken(this.#history.call(block));
        break;
      case "spoken":
        return;
      // The provider takes no others from the assistant.
      default:
        this.#inputs.onForeign();
        return;
    }
    this.#mark(block.cacheMark);
  }

  #addThought(block: ReasoningBlock): void {
    const thought = sentThought(block, this.#context.model.thoughtSeal);
    if (thought !== undefined) this.#thoughts.push(thought);
  }

  #addSpoken(block: Parameters<Turns["add"]>[1]): void {
    for (const thought of this.#thoughts) this.#turns.add("assistant", thought);
    this.#thoughts = [];
    this.#turns.add("assistant", block);
  }

  /** Adds the cache point that a turn or a block requests after its last block. */
  #mark(mark: CacheMark | undefined): void {
    this.#turns.addCachePoint(this.#pointFor(mark));
  }

  #markSystem(mark: CacheMark | undefined): void {
    const point = this.#pointFor(mark);
    const last = this.#system.at(-1);
    if (point !== undefined && last !== undefined && !("cachePoint" in last)) {
      this.#system.push(point);
    }
  }

  #pointFor(mark: CacheMark | undefined): CachePoint | undefined {
    return cachePointFor(mark, this.#context.model.capabilities);
  }

  #adjust(how: string): void {
    this.#context.adjustments.sendAs(fieldOf(this.#request, "turns"), how);
  }
}

/**
 * Families that read the status of a result. Source: Bedrock API reference, `ToolResultBlock`.
 */
const readsErrorStatus = /^(?:claude|nova)/;

/** Turns of other roles than the user's have no other words. */
function wordsOf(block: Block): string {
  return block.type === "text" || block.type === "refusal" ? block.text : "";
}

function isSilentBlock(block: Block): boolean {
  return block.type !== "tool-call" && isBlank(wordsOf(block));
}
