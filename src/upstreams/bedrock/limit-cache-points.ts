import type { ContentBlock, SystemBlock } from "./converse-body.ts";

/** The provider's limit for one request. */
const mostCachePoints = 4;

/** Takes the earliest points away where there are too many: later ones cover more of the prompt. */
export function limitCachePoints(contents: readonly (ContentBlock[] | SystemBlock[])[]): void {
  let excess = -mostCachePoints;
  for (const content of contents) {
    for (const block of content) if ("cachePoint" in block) excess += 1;
  }
  for (const content of contents) {
    for (let index = 0; excess > 0 && index < content.length; index += 1) {
      const block = content[index];
      if (block === undefined || !("cachePoint" in block)) continue;
      content.splice(index, 1);
      index -= 1;
      excess -= 1;
    }
  }
}
