import { cachePoint } from "../encode/converse-body.ts";
import type { Capabilities } from "../config/capabilities.ts";
import { listsOf, type PromptBlock, type PromptBlocks } from "./prompt-blocks.ts";

/**
 * Adds the cache points that help most conversations: after the tools, after the instructions, and
 * after the last two turns of the user, so that the next request finds what this one wrote. Adds
 * none if the caller has set some, and none that is certainly too early to have an effect.
 */
export function addCachePoints(
  prompt: PromptBlocks,
  { promptCacheTools, promptCacheMinTokens }: Capabilities,
): void {
  const lists = listsOf(prompt);
  if (lists.some((list) => list.some((block) => "cachePoint" in block))) return;
  const wanted = new Set<PromptBlock[]>([
    ...(promptCacheTools ? [prompt.tools] : []),
    prompt.system,
    ...prompt.turns
      .filter(({ role }) => role === "user")
      .slice(-2)
      .map(({ content }) => content),
  ]);
  let bytes = 0;
  for (const list of lists) {
    for (const block of list) bytes += bytesOf(block);
    const isLong = bytes >= promptCacheMinTokens * fewestBytesOfToken;
    if (isLong && list.length > 0 && wanted.has(list)) list.push(cachePoint);
  }
}

/** Texts have more bytes per token, so no point that would have an effect is left out. */
const fewestBytesOfToken = 2;

/** Size of what the model reads. All images and files count as the same number of tokens. */
function bytesOf(block: PromptBlock): number {
  if ("text" in block) return Buffer.byteLength(block.text);
  if ("toolResult" in block) {
    return block.toolResult.content.reduce((sum, part) => sum + bytesOf(part), 0);
  }
  if ("image" in block || "document" in block) return bytesOfAttachment;
  return "cachePoint" in block ? 0 : Buffer.byteLength(JSON.stringify(block));
}

const bytesOfAttachment = 4_096;
