import type { CacheMark } from "../../../domain/chat/conversation.ts";
import {
  cachePoint,
  type CachePoint,
  type ContentBlock,
  type ToolEntry,
  type Turn,
} from "./converse-body.ts";
import type { Capabilities } from "../config/capabilities.ts";

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

/** The provider's limit for one request. */
const mostCachePoints = 4;

/**
 * Removes the earliest points if there are too many, because later ones cover more of the prompt.
 * No point may last longer than one before it, so an hour after five minutes becomes five minutes.
 */
export function limitCachePoints(lists: readonly PromptBlock[][]): void {
  removeEarliest(lists);
  let isShort = false;
  for (const list of lists) {
    for (const [index, block] of list.entries()) {
      if (!("cachePoint" in block)) continue;
      if (block.cachePoint.ttl !== "1h") isShort = true;
      else if (isShort) list[index] = cachePoint;
    }
  }
}

function removeEarliest(lists: readonly PromptBlock[][]): void {
  let excess = -mostCachePoints;
  for (const list of lists) for (const block of list) if ("cachePoint" in block) excess += 1;
  for (const list of lists) {
    if (excess <= 0) return;
    // Compacted in one pass: removing each one separately would move all that follow every time.
    let keptLength = 0;
    for (const block of list) {
      if (excess > 0 && "cachePoint" in block) {
        excess -= 1;
        continue;
      }
      list[keptLength] = block;
      keptLength += 1;
    }
    list.length = keptLength;
  }
}

/**
 * The cache point for a caller's mark. It is a hint about cost: models without a prompt cache get
 * none, and models that only cache for five minutes do so.
 */
export function cachePointFor(
  mark: CacheMark | undefined,
  { promptCaching, promptCacheHour }: Capabilities,
): CachePoint | undefined {
  if (mark === undefined || !promptCaching) return undefined;
  return mark.ttl === "1h" && promptCacheHour ? hourPoint : cachePoint;
}

const hourPoint: CachePoint = { cachePoint: { type: "default", ttl: "1h" } };

/** The blocks that a model reads, in the provider's order; blocks can be added to the lists. */
export interface PromptBlocks {
  readonly tools: ToolEntry[];
  readonly system: ContentBlock[];
  readonly turns: readonly Turn[];
}

type PromptBlock = ToolEntry | ContentBlock;

export function listsOf({ tools, system, turns }: PromptBlocks): readonly PromptBlock[][] {
  return [tools, system, ...turns.map(({ content }) => content)];
}
