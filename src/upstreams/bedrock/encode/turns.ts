import { noMessage } from "./repair-turns.ts";
import type { CachePoint, ContentBlock, TextBlock, Turn } from "./converse-body.ts";

/**
 * Turns of a conversation as the provider wants them: user and assistant alternate, and none is
 * empty. Blocks are added in the order of the messages; blocks of one role in a row are one turn.
 */
export class Turns {
  readonly list: Turn[] = [];
  readonly #mayMixResults: boolean;
  #isUserSilent = false;

  constructor(options: { toolResultsWithText: boolean }) {
    this.#mayMixResults = options.toolResultsWithText;
  }

  get last(): Turn | undefined {
    return this.list.at(-1);
  }

  /** Whether the user has spoken last, without words. */
  get isUserSilent(): boolean {
    return this.#isUserSilent;
  }

  /** A message of the user without words: it keeps what the assistant says around it apart. */
  addSilence(): void {
    this.#isUserSilent = true;
  }

  add(role: Turn["role"], block: ContentBlock): void {
    if (this.#isUserSilent && role === "assistant" && this.last?.role === "assistant") {
      this.list.push({ role: "user", content: [noMessage] });
    }
    this.#isUserSilent = false;
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
