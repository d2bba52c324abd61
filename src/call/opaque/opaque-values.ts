import type {
  AnswerBlock,
  AnswerReasoning,
  ChatChoice,
  ChatEvent,
  ChatResult,
  ChunkExtra,
  ExtraFields,
} from "../../domain/chat/answer.ts";
import { isObject, nonEmpty } from "../../domain/json-fields.ts";
import {
  type Block,
  type Conversation,
  fieldOf,
  type ReasoningBlock,
  type ToolCallBlock,
  type Turn,
} from "../../domain/chat/conversation.ts";
import { type HolderTags, isMarkedId } from "./value-tags.ts";

/** A request as its upstream may read it. */
export interface Opened {
  readonly request: Conversation;
  /** The caller's field whose thoughts were dropped, if they were. */
  readonly droppedFrom: string | undefined;
}

/**
 * What only one origin understands, on its way to one account and back: thoughts that it wants to
 * see again, ids of spoken answers, and fields of tool calls, whose ids bear a mark of who wrote them.
 */
export class OpaqueValues {
  readonly #tags: HolderTags;

  constructor(tags: HolderTags) {
    this.#tags = tags;
  }

  tagResult(result: ChatResult): ChatResult {
    if (!result.choices.some(isOpaqueChoice)) return result;
    const choices = result.choices.map((choice) => {
      const blocks = choice.blocks.map((block) => this.#tagBlock(block));
      const { extra } = choice;
      return { ...choice, blocks, ...(hasOpaque(extra) && { extra: this.#tagMessage(extra) }) };
    });
    return { ...result, choices };
  }

  tagEvents(events: readonly ChatEvent[]): readonly ChatEvent[] {
    return events.some(isOpaque) ? events.map((event) => this.#tagEvent(event)) : events;
  }

  /**
   * Takes the tags off. Thoughts return all together or not at all: a model refuses the thoughts of
   * others, and some refuse a gap among their own, which a turn of another model may be to them.
   */
  open(request: Conversation): Opened {
    if (!hasTags(request)) return { request, droppedFrom: undefined };
    const { turns } = request;
    const opened = this.#openThoughts(turns);
    const kept = opened ?? turns.flatMap(withoutThoughts);
    return {
      request: { ...request, turns: kept.map((turn) => this.#openCalls(turn)) },
      droppedFrom: opened === undefined ? fieldOf(request, "turns") : undefined,
    };
  }

  /** Whether the origin wrote the newest of what is tagged. */
  wroteNewest({ turns }: Conversation): boolean {
    for (let index = turns.length - 1; index >= 0; index -= 1) {
      const newest = turns[index]?.blocks.findLast(isTagged);
      if (newest?.type === "reasoning") return this.#valueOf(newest) !== undefined;
      if (newest?.type === "spoken") return this.#tags.open(newest.id, "") !== undefined;
      if (newest?.type === "tool-call") return this.#callOf(newest).author === "this";
    }
    return false;
  }

  /** Undefined if a thought is not the origin's. */
  #openThoughts(turns: readonly Turn[]): readonly Turn[] | undefined {
    const opened: Turn[] = [];
    for (const turn of turns) {
      const blocks: Block[] = [];
      for (const block of turn.blocks) {
        const opaque = isThought(block) ? this.#valueOf(block) : "";
        if (opaque === undefined) return undefined;
        blocks.push(isThought(block) ? { ...block, opaque } : block);
      }
      opened.push({ ...turn, blocks });
    }
    return opened;
  }

  #openCalls(turn: Turn): Turn {
    const blocks = turn.blocks.map((block): Block => {
      if (block.type === "tool-call") return this.#callOf(block);
      if (block.type === "tool-result" && block.callId !== undefined) {
        return { ...block, callId: this.#tags.readId(block.callId).id };
      }
      if (block.type === "spoken") {
        return { ...block, id: this.#tags.open(block.id, "") ?? block.id };
      }
      return block;
    });
    return { ...turn, blocks };
  }

  #valueOf(thought: ReasoningBlock): string | undefined {
    return this.#tags.open(thought.opaque ?? "", textBeside(thought));
  }

  #callOf(call: ToolCallBlock): ToolCallBlock {
    return call.id === undefined ? call : { ...call, ...this.#tags.readId(call.id) };
  }

  #tagEvent(event: ChatEvent): ChatEvent {
    switch (event.type) {
      case "reasoning-block":
        return { ...event, content: this.#tagThought(event.content) };
      case "tool-call-start":
        return event.extra === undefined ? event : { ...event, id: this.#tags.markId(event.id) };
      case "text-delta":
      case "choice-finish": {
        const { extra } = event;
        return hasOpaque(extra) ? { ...event, extra: this.#tagMessage(extra) } : event;
      }
      default:
        return event;
    }
  }

  /**
   * Thoughts that a server of OpenAI's wire writes in OpenRouter's way, piece by piece, and the id of a
   * spoken answer, by which its provider remembers it.
   */
  #tagMessage<Extra extends WithMessage>(extra: Extra): Extra {
    const { reasoning_details: details, audio } = extra.message;
    const message: Record<string, unknown> = { ...extra.message };
    if (Array.isArray(details)) {
      message["reasoning_details"] = details.map((detail) =>
        this.#tagFields(detail, ["signature", "data"]),
      );
    }
    if (audio !== undefined) message["audio"] = this.#tagFields(audio, ["id"]);
    return { ...extra, message };
  }

  #tagFields(value: unknown, fields: readonly string[]): unknown {
    if (!isObject(value)) return value;
    const tagged = { ...value };
    for (const field of fields) {
      const own = nonEmpty(value[field]);
      if (own !== undefined) tagged[field] = this.#tags.tag(own, "");
    }
    return tagged;
  }

  #tagBlock(block: AnswerBlock): AnswerBlock {
    switch (block.type) {
      case "reasoning":
        return this.#tagThought(block);
      case "tool-call": {
        const { id, extra } = block;
        const isPlain = id === undefined || extra === undefined;
        return isPlain ? block : { ...block, id: this.#tags.markId(id) };
      }
      default:
        return block;
    }
  }

  #tagThought(thought: AnswerReasoning): AnswerReasoning {
    const { opaque } = thought;
    if (opaque === undefined) return thought;
    return { ...thought, opaque: this.#tags.tag(opaque, textBeside(thought)) };
  }
}

function isOpaqueChoice({ blocks, extra }: ChatChoice): boolean {
  return hasOpaque(extra) || blocks.some(isOpaqueBlock);
}

function isOpaqueBlock(block: AnswerBlock): boolean {
  if (block.type === "reasoning") return block.opaque !== undefined;
  return block.type === "tool-call" && block.extra !== undefined;
}

function isOpaque(event: ChatEvent): boolean {
  switch (event.type) {
    case "reasoning-block":
      return true;
    case "tool-call-start":
      return event.extra !== undefined;
    case "text-delta":
    case "choice-finish":
      return hasOpaque(event.extra);
    default:
      return false;
  }
}

interface WithMessage {
  readonly message: ExtraFields;
}

function hasOpaque<Extra extends ChunkExtra>(
  extra: Extra | undefined,
): extra is Extra & WithMessage {
  const message = extra?.message;
  if (message === undefined) return false;
  return Array.isArray(message["reasoning_details"]) || message["audio"] !== undefined;
}

/** Callers may show a redacted thought as any text, but as no other thought. */
function textBeside({ text, isRedacted }: AnswerReasoning): string {
  return isRedacted === true ? "redacted" : `text ${text}`;
}

type Thought = ReasoningBlock & { readonly opaque: string };

/** A thought that its upstream wants to see again; others have only a text. */
function isThought(block: Block): block is Thought {
  return block.type === "reasoning" && block.opaque !== undefined;
}

/** Whether it has anything that only its origin understands. */
export function hasTags({ turns }: Conversation): boolean {
  return turns.some(({ blocks }) => blocks.some(isTagged));
}

function isTagged(block: Block): boolean {
  if (block.type === "tool-call") return isMarkedId(block.id);
  return block.type === "spoken" || isThought(block);
}

/** Nothing is left of a turn of thoughts alone. */
function withoutThoughts(turn: Turn): readonly Turn[] {
  if (!turn.blocks.some(isThought)) return [turn];
  const blocks = turn.blocks.filter((block) => !isThought(block));
  return blocks.length === 0 ? [] : [{ ...turn, blocks }];
}
