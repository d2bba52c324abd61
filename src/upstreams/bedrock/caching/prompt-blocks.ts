import type { ContentBlock, SystemBlock, ToolEntry, Turn } from "../encode/converse-body.ts";

/** The blocks that a model reads, in the provider's order; blocks can be added to the lists. */
export interface PromptBlocks {
  readonly tools: ToolEntry[];
  readonly system: SystemBlock[];
  readonly turns: readonly Turn[];
}

export type PromptBlock = ToolEntry | ContentBlock;

export function listsOf({ tools, system, turns }: PromptBlocks): readonly PromptBlock[][] {
  return [tools, system, ...turns.map(({ content }) => content)];
}
