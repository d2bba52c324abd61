import type { ContentBlock, SystemBlock, ToolEntry, Turn } from "../encode/converse-body.ts";

/** What a model reads, in the order in which the provider does: the lists can be added to. */
export interface PromptBlocks {
  readonly tools: ToolEntry[];
  readonly system: SystemBlock[];
  readonly turns: readonly Turn[];
}

export type PromptBlock = ToolEntry | ContentBlock;

export function listsOf({ tools, system, turns }: PromptBlocks): readonly PromptBlock[][] {
  return [tools, system, ...turns.map(({ content }) => content)];
}
