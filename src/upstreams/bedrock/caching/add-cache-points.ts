import { cachePoint } from "../encode/converse-body.ts";
import type { Capabilities } from "../config/capabilities.ts";
import { listsOf, type PromptBlock, type PromptBlocks } from "./prompt-blocks.ts";

/**
 * Puts the cache points that most conversations gain from: behind the tools, behind the
 * instructions, and behind the last two turns of the user, so that the next request finds what this
 * one wrote. None where the caller has put some, and none that would surely be too early to count.
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

/** Texts have more bytes for each token, so that no point is left out that would count. */
const fewestBytesOfToken = 2;

/** Of what the model reads of it. A picture or a file counts as many tokens, whatever its size. */
function bytesOf(block: PromptBlock): number {
  if ("text" in block) return Buffer.byteLength(block.text);
  if ("toolResult" in block) {
    return block.toolResult.content.reduce((sum, part) => sum + bytesOf(part), 0);
  }
  if ("image" in block || "document" in block) return bytesOfAttachment;
  return "cachePoint" in block ? 0 : Buffer.byteLength(JSON.stringify(block));
}

const bytesOfAttachment = 4_096;
