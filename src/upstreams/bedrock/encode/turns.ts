import { noMessage } from "./repair-turns.ts";
import type { CachePoint, ContentBlock, TextBlock, Turn } from "./converse-body.ts";

/**
 * The turns of a conversation in the provider's form: user and assistant alternate, and none is
 * empty. Blocks are added in the order of the messages; successive blocks of one role are one turn.
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

  /** Whether the last message is an empty one of the user. */
  get isUserSilent(): boolean {
    return this.#isUserSilent;
  }

  /** An empty message of the user: it separates the assistant's messages around it. */
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
    // Some models refuse text beside results. Inside a result, the user's text would look like the
    // tool's.
    this.list.push({ role: "assistant", content: [between] }, { role, content: [block] });
  }

  /** Marks that the prompt may be cached up to the block that was added last. */
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
