import type { CacheMark, Conversation, ReasoningBlock } from "../../../domain/chat/conversation.ts";
import type { BlockWriter, SentCall, SentResult } from "../../../wires/block-writer.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { cachePointFor } from "./cache-points.ts";
import { AttachmentLimits, DocumentNames, encodeInput, type InputContext } from "./content.ts";
import type { ContentBlock, ResultBlock, Turn } from "./converse-body.ts";

/** Writes the blocks of a conversation for Converse. */
export class ConverseWriter implements BlockWriter<ContentBlock> {
  readonly #model: BedrockModel;
  readonly #inputs: InputContext;
  readonly #limits: AttachmentLimits;

  constructor({ wire }: Conversation, model: BedrockModel) {
    this.#model = model;
    this.#inputs = { wire, model, names: new DocumentNames() };
    this.#limits = new AttachmentLimits(model.capabilities);
  }

  text(text: string): ContentBlock {
    return { text };
  }

  textOf(sent: ContentBlock): string | undefined {
    return "text" in sent ? sent.text : undefined;
  }

  trimEnd(sent: ContentBlock): ContentBlock {
    return "text" in sent ? { text: sent.text.trimEnd() } : sent;
  }

  isResult(sent: ContentBlock): boolean {
    return "toolResult" in sent;
  }

  isThought(sent: ContentBlock): boolean {
    return "reasoningContent" in sent;
  }

  isImage(sent: ContentBlock): boolean {
    return "image" in sent;
  }

  input(block: Parameters<BlockWriter<ContentBlock>["input"]>[0]): readonly ContentBlock[] {
    return encodeInput(block, this.#inputs);
  }

  foreign(): undefined {
    return undefined;
  }

  thought({ text, opaque, isRedacted }: ReasoningBlock): ContentBlock | undefined {
    if (opaque === undefined) return undefined;
    return isRedacted === true
      ? { reasoningContent: { redactedContent: opaque } }
      : { reasoningContent: { reasoningText: { text, signature: opaque } } };
  }

  call({ id, name, input }: SentCall): ContentBlock {
    return { toolUse: { toolUseId: id, name, input } };
  }

  result({ id, content, from }: SentResult<ContentBlock>): ContentBlock {
    const sent = content.filter(isResultBlock);
    if (from.isError !== true) return { toolResult: { toolUseId: id, content: sent } };
    return readsErrorStatus.test(this.#model.family)
      ? { toolResult: { toolUseId: id, content: sent, status: "error" } }
      : { toolResult: { toolUseId: id, content: [{ text: "The tool failed." }, ...sent] } };
  }

  mark(content: ContentBlock[], mark: CacheMark): void {
    const point = cachePointFor(mark, this.#model.capabilities);
    const last = content.at(-1);
    if (point !== undefined && last !== undefined && !("cachePoint" in last)) content.push(point);
  }

  count(sent: ContentBlock, turn: Turn | undefined, at: string): void {
    this.#limits.count(sent, turn, at);
  }
}

/** Families that read the status of a result. Source: Bedrock API reference, `ToolResultBlock`. */
const readsErrorStatus = /^(?:claude|nova)/;

function isResultBlock(sent: ContentBlock): sent is ResultBlock {
  return "text" in sent || "image" in sent || "document" in sent;
}

/** Documents alone are refused. */
export function addDocumentWords(turns: readonly Turn[]): void {
  for (const { content } of turns) {
    const names = content.flatMap((block) => ("document" in block ? [block.document.name] : []));
    if (names.length === 0 || content.some((block) => "text" in block)) continue;
    content.push({ text: `Attached: ${names.join(", ")}` });
  }
}
