import type { AnswerReasoning, AnswerToolCall, ChatChoice } from "../../src/domain/chat/answer.ts";

/** The blocks of a choice by their kinds, each in their order. */
export interface ChoiceParts {
  readonly content: string | undefined;
  readonly reasoning: string | undefined;
  /** Those that their provider expects back. */
  readonly reasoningBlocks: readonly AnswerReasoning[] | undefined;
  readonly toolCalls: readonly Omit<AnswerToolCall, "type">[];
  readonly functionCall: { readonly name: string; readonly arguments: string } | undefined;
}

export function partsOf({ blocks }: Pick<ChatChoice, "blocks">): ChoiceParts {
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const thoughts = blocks.filter((block) => block.type === "reasoning");
  const said = thoughts.filter(({ text }) => text !== "");
  const signed = thoughts.filter(({ opaque }) => opaque !== undefined);
  const calls = blocks.filter((block) => block.type === "tool-call");
  const old = calls.find(({ id }) => id === undefined);
  return {
    content: texts.length === 0 ? undefined : texts.join(""),
    reasoning: said.length === 0 ? undefined : said.map(({ text }) => text).join(""),
    reasoningBlocks: signed.length === 0 ? undefined : signed,
    toolCalls: calls.flatMap(({ type: _type, ...call }) => (call.id === undefined ? [] : [call])),
    functionCall: old && { name: old.name, arguments: old.arguments },
  };
}
