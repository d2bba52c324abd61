import type { ChatChoice } from "../../src/domain/chat/answer.ts";

/** The text of a choice; undefined if it has none. */
export function contentOf({ blocks }: Pick<ChatChoice, "blocks">): string | undefined {
  const texts = blocks.flatMap((block) => (block.type === "text" ? block.text : []));
  return texts.length === 0 ? undefined : texts.join("");
}
