import type { ContentBlock } from "../converse-body.ts";

/** The provider's limit for one request. */
const mostCachePoints = 4;

/** Takes the earliest points away where there are too many: later ones cover more of the prompt. */
export function limitCachePoints(contents: readonly ContentBlock[][]): void {
  let excess = -mostCachePoints;
  for (const content of contents) {
    for (const block of content) if ("cachePoint" in block) excess += 1;
  }
  for (const content of contents) {
    if (excess <= 0) return;
    // Moved up in place: each removal for itself would move all that follows.
    let keptLength = 0;
    for (const block of content) {
      if (excess > 0 && "cachePoint" in block) {
        excess -= 1;
        continue;
      }
      content[keptLength] = block;
      keptLength += 1;
    }
    content.length = keptLength;
  }
}
