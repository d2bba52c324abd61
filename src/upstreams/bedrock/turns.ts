import type { CachePoint, ContentBlock, TextBlock, Turn } from "./converse-body.ts";

/**
 * Turns of a conversation as the provider wants them: user and assistant alternate, and none is
 * empty. Blocks are added in the order of the messages; blocks of one role in a row are one turn.
 */
export class Turns {
  readonly list: Turn[] = [];
  readonly #mayMixResults: boolean;

  constructor(options: { toolResultsWithText: boolean }) {
    this.#mayMixResults = options.toolResultsWithText;
  }

  get last(): Turn | undefined {
    return this.list.at(-1);
  }

  add(role: Turn["role"], block: ContentBlock): void {
    const last = this.last;
    if (last?.role !== role) {
      this.list.push({ role, content: [block] });
      return;
    }
    if (this.#mayMixResults || role === "assistant" || !holdsResults(last) || isResult(block)) {
      last.content.push(block);
      return;
    }
    // Some models refuse words beside results. The user's words stay the user's this way; within a
    // result they would pass for what a tool said.
    this.list.push({ role: "assistant", content: [between] }, { role, content: [block] });
  }

  /** Marks that the prompt may be kept up to the block that was added last. */
  addCachePoint(point: CachePoint | undefined): void {
    const content = this.last?.content;
    const block = content?.at(-1);
    if (point === undefined || block === undefined || "cachePoint" in block) return;
    content?.push(point);
  }
}

/** Whether a turn answers tool calls: results come before anything else in it. */
export function holdsResults(turn: Turn): boolean {
  const first = turn.content[0];
  return first !== undefined && isResult(first);
}

function isResult(block: ContentBlock): boolean {
  return "toolResult" in block;
}

const between: TextBlock = { text: "I have the results." };
