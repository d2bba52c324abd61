import {
  type Block,
  type CacheMark,
  type Conversation,
  fieldOf,
  type ForeignBlock,
  type ReasoningBlock,
  type ToolResultBlock,
  type Turn,
} from "../../../domain/chat/conversation.ts";
import { type Adjustments, isBlank } from "../adjustments.ts";
import { unsupported } from "../../../domain/errors/upstream-failure.ts";
import { ToolHistory } from "../tools/tool-history.ts";
import type { ToolNames } from "../tools/tool-names.ts";
import type { BlockWriter, WireTurn } from "../../../wires/block-writer.ts";
import { finishTurns, repairTurns, Turns, withFirstWords } from "./turns.ts";

export interface EncodedTurns<Sent> {
  readonly system: Sent[];
  /** Begins with the user; user and assistant alternate. */
  readonly turns: readonly WireTurn<Sent>[];
}

/** What a model takes. */
export interface TurnRules {
  readonly system: boolean;
  readonly prefill: boolean;
  readonly toolResultsWithText: boolean;
  readonly toolResultImages: boolean;
  readonly nineCharacterToolIds: boolean;
}

export interface TurnContext<Sent> {
  readonly writer: BlockWriter<Sent>;
  readonly rules: TurnRules;
  /** Whether a conversation that the provider would refuse gets a turn of the user. */
  readonly isRepaired: boolean;
  readonly names: ToolNames;
  /** Whether the request lets the model call tools. */
  readonly offersTools: boolean;
  /** Added after the caller's own instructions. */
  readonly instruction: string | undefined;
  readonly adjustments: Adjustments;
}

/** An image of a tool's result that the user's turn holds instead. */
interface MovedImage<Sent> {
  readonly block: Sent;
  readonly label: string;
  readonly at: string;
}

/** Converts a conversation to the provider's turns and separate instructions. */
export function encodeTurns<Sent>(
  request: Conversation,
  context: TurnContext<Sent>,
): EncodedTurns<Sent> {
  const encoder = new TurnEncoder(request, context);
  for (const turn of request.turns) encoder.add(turn);
  return encoder.finish();
}

class TurnEncoder<Sent> {
  readonly #request: Conversation;
  readonly #context: TurnContext<Sent>;
  readonly #writer: BlockWriter<Sent>;
  readonly #system: Sent[] = [];
  readonly #turns: Turns<Sent>;
  readonly #history: ToolHistory<Sent>;
  readonly #movesImages: boolean;
  #movedCount = 0;
  /** Those that wait for the end of the results. */
  #moved: MovedImage<Sent>[] = [];
  /** Later instructions that wait for the same. */
  #later: (readonly [Sent, CacheMark | undefined])[] = [];
  /** Thoughts that are sent only if more of the assistant's turn follows. */
  #thoughts: Sent[] = [];
  /** The index in the system of the last instruction, if the model has only that to answer. */
  #lastInstruction: number | undefined;

  constructor(request: Conversation, context: TurnContext<Sent>) {
    const { names, offersTools, rules, writer } = context;
    this.#request = request;
    this.#context = context;
    this.#writer = writer;
    // If results are written as text, their images belong to the user anyway.
    this.#movesImages = offersTools && !rules.toolResultImages;
    this.#turns = new Turns(writer, rules);
    this.#history = new ToolHistory(request, writer, {
      names,
      nineCharacterToolIds: rules.nineCharacterToolIds,
      isText: !offersTools,
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

  finish(): EncodedTurns<Sent> {
    this.#endResults();
    const { instruction, isRepaired, rules } = this.#context;
    const { list: turns, isUserSilent } = this.#turns;
    const writer = this.#writer;
    const system = this.#system;
    const lastInstruction = this.#lastInstruction;
    if (isRepaired) repairTurns({ system, turns, lastInstruction, isUserSilent }, writer);
    if (instruction !== undefined) system.push(writer.text(instruction));
    finishTurns(turns, writer, { field: fieldOf(this.#request, "turns"), prefill: rules.prefill });
    if (rules.system) return { system, turns: withFirstWords(turns, [], writer) };
    // A model without system instructions gets them at the beginning of the first turn.
    return { system: [], turns: withFirstWords(turns, system, writer) };
  }

  /**
   * Providers accept instructions only for the whole conversation. Later ones stay in place, as tagged
   * words of the user: moved, they would change what comes before thoughts that the model has signed.
   */
  #addInstructions({ blocks, cacheMark }: Turn): void {
    const said = blocks.filter((block) => !isBlank(wordsOf(block)));
    if (this.#turns.last !== undefined) {
      for (const [index, block] of said.entries()) {
        const ofTurn = index === said.length - 1 ? cacheMark : undefined;
        const text = this.#writer.text(`<system>\n${wordsOf(block)}\n</system>`);
        this.#later.push([text, block.cacheMark ?? ofTurn]);
      }
      if (!this.#history.isOpen) this.#addLater();
      return;
    }
    const begin = this.#system.length;
    for (const block of said) {
      this.#system.push(this.#writer.text(wordsOf(block)));
      this.#markSystem(block.cacheMark);
    }
    this.#markSystem(cacheMark);
    if (said.length > 0) this.#lastInstruction = begin;
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
      for (const input of this.#input(block)) {
        isSilent = false;
        this.#addInput(input, block.at);
        this.#mark(block.cacheMark);
      }
    }
    if (!isSilent) this.#mark(cacheMark);
    else if (this.#context.isRepaired) this.#turns.addSilence();
  }

  #addInput(input: Sent, at: string): void {
    this.#turns.add("user", input);
    this.#writer.count(input, this.#turns.last, at);
  }

  #addResult(result: ToolResultBlock): void {
    const kept: (readonly [Sent, string])[] = [];
    for (const part of result.content) {
      for (const block of this.#input(part)) {
        const isMoved = this.#movesImages && this.#writer.isImage(block);
        kept.push([isMoved ? this.#move(block, part.at) : block, part.at]);
      }
    }
    const content = kept.map(([block]) => block);
    for (const block of this.#history.result(result, content)) this.#turns.add("user", block);
    for (const [block, at] of kept) this.#writer.count(block, this.#turns.last, at);
    for (const { cacheMark } of [...result.content, result]) this.#mark(cacheMark);
  }

  /** Returns what stands in the result: some models take images from the user alone. */
  #move(block: Sent, at: string): Sent {
    this.#movedCount += 1;
    const label = `tool image ${this.#movedCount}`;
    this.#moved.push({ block, label, at });
    this.#adjust("tool-images-moved");
    return this.#writer.text(`[This image follows the tool results as ${label}.]`);
  }

  /** Call before anything but a result: what was moved comes after all results of the turn. */
  #endResults(): void {
    this.#history.checkAnswered();
    for (const { block, label, at } of this.#moved) {
      this.#turns.add("user", this.#writer.text(`[${label}:]`));
      this.#addInput(block, at);
    }
    this.#moved = [];
    this.#addLater();
  }

  #addLater(): void {
    if (this.#later.length === 0) return;
    this.#thoughts = [];
    for (const [block, cacheMark] of this.#later) {
      this.#turns.add("user", block);
      this.#mark(cacheMark);
    }
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
      case "foreign":
        for (const said of this.#input(block)) this.#addSaid(said, block.cacheMark);
        return;
      case "tool-call":
        this.#addSaid(this.#history.call(block), block.cacheMark);
        return;
      case "spoken":
        return;
      // Providers take no others from the assistant.
      default:
        this.#adjust("server-blocks-dropped");
    }
  }

  #addThought(block: ReasoningBlock): void {
    const thought = this.#writer.thought(block);
    if (thought !== undefined) this.#thoughts.push(thought);
  }

  #addSaid(said: Sent, cacheMark: CacheMark | undefined): void {
    // Without thoughts, the first words of a conversation may be a greeting of the application's.
    const isGreeting = this.#turns.last === undefined && this.#thoughts.length === 0;
    if (isGreeting) this.#lastInstruction = undefined;
    for (const thought of this.#thoughts) this.#turns.add("assistant", thought);
    this.#thoughts = [];
    this.#turns.add("assistant", said);
    this.#mark(cacheMark);
  }

  #input(block: Block): readonly Sent[] {
    return block.type === "foreign" ? this.#foreign(block) : this.#writer.input(block);
  }

  #foreign(block: ForeignBlock): readonly Sent[] {
    const own = this.#writer.foreign(block);
    if (own !== undefined) return [own];
    const { text, at } = block;
    if (text !== undefined) return this.#writer.input({ type: "text", text, at });
    this.#adjust("server-blocks-dropped");
    return [];
  }

  /** Marks the last block for the cache, as a turn or a block requests it. */
  #mark(mark: CacheMark | undefined): void {
    const content = this.#turns.last?.content;
    if (mark !== undefined && content !== undefined) this.#writer.mark(content, mark);
  }

  #markSystem(mark: CacheMark | undefined): void {
    if (mark !== undefined && this.#system.length > 0) this.#writer.mark(this.#system, mark);
  }

  #adjust(how: string): void {
    this.#context.adjustments.sendAs(fieldOf(this.#request, "turns"), how);
  }
}

/** Turns of other roles than the user's have no other words. */
function wordsOf(block: Block): string {
  return block.type === "text" || block.type === "refusal" ? block.text : "";
}

function isSilentBlock(block: Block): boolean {
  return block.type !== "tool-call" && isBlank(wordsOf(block));
}
