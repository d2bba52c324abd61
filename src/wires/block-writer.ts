import type {
  Block,
  CacheMark,
  ForeignBlock,
  ReasoningBlock,
  ToolCallBlock,
  ToolResultBlock,
} from "../domain/chat/conversation.ts";
import type { JsonObject } from "../domain/json-fields.ts";

/** A turn as providers take it: user and assistant alternate. */
export interface WireTurn<Sent> {
  readonly role: "user" | "assistant";
  readonly content: Sent[];
}

/** How one wire writes the blocks of a conversation. `Sent` are its blocks. */
export interface BlockWriter<Sent> {
  text(text: string): Sent;
  /** The text of a block of text; undefined for others. */
  textOf(sent: Sent): string | undefined;
  /** A block of text without white space at its end. */
  trimEnd(sent: Sent): Sent;
  isResult(sent: Sent): boolean;
  isImage(sent: Sent): boolean;
  isThought(sent: Sent): boolean;
  /** None for a blank text. Throws `UpstreamFailure` for what the model does not take. */
  input(block: Exclude<Block, ForeignBlock>): readonly Sent[];
  /** Undefined if the wire does not know the block. */
  foreign(block: ForeignBlock): Sent | undefined;
  /** Undefined for a thought that the model does not recognise. */
  thought(block: ReasoningBlock): Sent | undefined;
  call(call: SentCall): Sent;
  result(result: SentResult<Sent>): Sent;
  /** Marks that the prompt may be cached up to the last block of `content`, which has some. */
  mark(content: Sent[], mark: CacheMark): void;
  /** Called with each block of the user in its turn; throws when there are too many of a kind. */
  count(sent: Sent, turn: WireTurn<Sent> | undefined, at: string): void;
}

export interface SentCall {
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
  readonly from: ToolCallBlock;
}

export interface SentResult<Sent> {
  readonly id: string;
  /** Without blank texts. */
  readonly content: readonly Sent[];
  readonly from: ToolResultBlock;
}
