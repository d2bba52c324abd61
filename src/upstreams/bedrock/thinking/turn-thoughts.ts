import type { ContentBlock, Turn } from "../encode/converse-body.ts";

/** The turns for a model that does not think in this request, which accepts no thoughts either. */
export function withoutThoughts(turns: readonly Turn[]): readonly Turn[] {
  return turns.map((turn) =>
    turn.content.some(isThought)
      ? { ...turn, content: turn.content.filter((block) => !isThought(block)) }
      : turn,
  );
}

export function beginsWithThoughts(turn: Turn | undefined): boolean {
  const first = turn?.content[0];
  return first !== undefined && isThought(first);
}

function isThought(block: ContentBlock): boolean {
  return "reasoningContent" in block;
}
