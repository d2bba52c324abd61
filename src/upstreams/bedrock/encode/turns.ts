import type { CachePoint, ContentBlock, SystemBlock, TextBlock, Turn } from "./converse-body.ts";
import { invalidRequest, unsupported } from "./adjustments.ts";

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

/** Checks and completes what depends on all turns. `field` is the caller's, for refusals. */
export function finishTurns(
  turns: readonly Turn[],
  field: string,
  { prefill }: { readonly prefill: boolean },
): void {
  const [first] = turns;
  if (first === undefined) {
    throw invalidRequest(field, "At least one user message must have content.");
  }
  if (first.role === "assistant") {
    throw unsupported(
      field,
      "Conversations with this model must begin with a user message, not an assistant message. " +
        "Put a user message with content first.",
    );
  }
  const last = turns.at(-1);
  if (last?.role === "assistant") finishPrefill(last, prefill, field);
  for (const turn of turns) finishDocuments(turn);
}

/** The last turn is the assistant's: the model continues its text. */
function finishPrefill(turn: Turn, isAllowed: boolean, field: string): void {
  if (!isAllowed) {
    throw unsupported(
      field,
      "This model does not continue assistant messages. The last message must come from " +
        "the user or a tool.",
    );
  }
  const index = turn.content.findLastIndex((block) => "text" in block);
  const block = turn.content[index];
  if (block === undefined || !("text" in block)) return;
  // White space at its end is refused.
  turn.content[index] = { text: block.text.trimEnd() };
}

function finishDocuments({ content }: Turn): void {
  const names = content.flatMap((block) => ("document" in block ? [block.document.name] : []));
  if (names.length === 0 || content.some((block) => "text" in block)) return;
  // Documents alone are refused.
  content.push({ text: `Attached: ${names.join(", ")}` });
}

/** The text of a user turn that the provider requires and the caller did not send. */
const noMessage: TextBlock = { text: "(no message)" };

interface UnfinishedConversation {
  readonly system: SystemBlock[];
  readonly turns: Turn[];
  /** The index in `system` of the last instruction, if no assistant message follows it. */
  readonly lastInstruction: number | undefined;
  /** Whether the last message is an empty one of the user. */
  readonly isUserSilent: boolean;
}

/**
 * Makes a conversation begin with the user and, unless the assistant's text is to be continued, end
 * with the user: an instruction after all turns becomes the user's turn, or a placeholder is added.
 * The first turn is left empty if the assistant begins; see `withFirstWords`.
 */
export function repairTurns(conversation: UnfinishedConversation): void {
  const { system, turns, lastInstruction, isUserSilent } = conversation;
  if (turns.at(-1)?.role !== "user") {
    if (lastInstruction !== undefined) {
      turns.push({ role: "user", content: system.splice(lastInstruction) });
    } else if (isUserSilent && turns.length > 0) {
      turns.push({ role: "user", content: [noMessage] });
    }
  }
  if (turns[0]?.role !== "user") turns.unshift({ role: "user", content: [] });
}

/** The turns after `words`; a first turn that stays empty gets a placeholder. */
export function withFirstWords(
  turns: readonly Turn[],
  words: readonly SystemBlock[],
): readonly Turn[] {
  return turns.map(({ role, content }, index) => {
    if (index > 0) return { role, content };
    const joined = [...words, ...content];
    return { role, content: joined.length > 0 ? joined : [noMessage] };
  });
}
