import { cachePoint } from "../encode/converse-body.ts";
import type { PromptBlock } from "./prompt-blocks.ts";

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
