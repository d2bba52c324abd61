import { invalidRequest, unsupported } from "../../../domain/errors/upstream-failure.ts";
import type { BlockWriter, WireTurn } from "../../../wires/block-writer.ts";

/**
 * The turns of a conversation in the provider's form: user and assistant alternate, and none is
 * empty. Blocks are added in the order of the messages; successive blocks of one role are one turn.
 */
export class Turns<Sent> {
  readonly list: WireTurn<Sent>[] = [];
  readonly #writer: BlockWriter<Sent>;
  readonly #mayMixResults: boolean;
  #isUserSilent = false;

  constructor(writer: BlockWriter<Sent>, options: { toolResultsWithText: boolean }) {
    this.#writer = writer;
    this.#mayMixResults = options.toolResultsWithText;
  }

  get last(): WireTurn<Sent> | undefined {
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

  add(role: WireTurn<Sent>["role"], block: Sent): void {
    const writer = this.#writer;
    if (this.#isUserSilent && role === "assistant" && this.last?.role === "assistant") {
      this.list.push({ role: "user", content: [writer.text(noMessage)] });
    }
    this.#isUserSilent = false;
    const last = this.last;
    if (last?.role !== role) {
      this.list.push({ role, content: [block] });
      return;
    }
    const mayFollow = this.#mayMixResults || role === "assistant" || writer.isResult(block);
    if (mayFollow || !holdsResults(last, writer)) {
      last.content.push(block);
      return;
    }
    // Some models refuse text beside results. Inside a result, the user's text would look like the
    // tool's.
    this.list.push(
      { role: "assistant", content: [writer.text(between)] },
      { role, content: [block] },
    );
  }
}

/** Whether the last turn has results of calls without the thoughts before the calls. */
export function lacksThoughts<Sent>(
  turns: readonly WireTurn<Sent>[],
  writer: BlockWriter<Sent>,
): boolean {
  const last = turns.at(-1);
  const [calls] = turns.at(-2)?.content ?? [];
  if (last === undefined || !holdsResults(last, writer)) return false;
  return calls === undefined || !writer.isThought(calls);
}

/** The turns for a model that does not think in this request, which accepts no thoughts either. */
export function withoutThoughts<Sent>(
  turns: readonly WireTurn<Sent>[],
  writer: BlockWriter<Sent>,
): readonly WireTurn<Sent>[] {
  return turns.map(({ role, content }) => ({
    role,
    content: content.filter((block) => !writer.isThought(block)),
  }));
}

/** Whether a turn answers tool calls: results come before anything else in it. */
function holdsResults<Sent>(
  { content }: WireTurn<Sent>,
  writer: Pick<BlockWriter<Sent>, "isResult">,
): boolean {
  const [first] = content;
  return first !== undefined && writer.isResult(first);
}

const between = "I have the results.";

/** Checks and completes what depends on all turns. `field` is the caller's, for refusals. */
export function finishTurns<Sent>(
  turns: readonly WireTurn<Sent>[],
  writer: BlockWriter<Sent>,
  { field, prefill }: { readonly field: string; readonly prefill: boolean },
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
  if (last?.role !== "assistant") return;
  // The model continues the text of the last turn.
  if (!prefill) {
    throw unsupported(
      field,
      "This model does not continue assistant messages. The last message must come from " +
        "the user or a tool.",
    );
  }
  const { content } = last;
  const index = content.findLastIndex((block) => writer.textOf(block) !== undefined);
  const block = content[index];
  // White space at its end is refused.
  if (block !== undefined) content[index] = writer.trimEnd(block);
}

/** The text of a user turn that the provider requires and the caller did not send. */
const noMessage = "(no message)";

interface UnfinishedTurns<Sent> {
  readonly system: Sent[];
  readonly turns: WireTurn<Sent>[];
  /** The index in `system` of the last instruction, if the model has only that to answer. */
  readonly lastInstruction: number | undefined;
  /** Whether the last message is an empty one of the user. */
  readonly isUserSilent: boolean;
}

/**
 * Makes a conversation begin with the user and, unless the assistant's text is to be continued, end
 * with the user. The first turn is the last instruction, or empty; see `withFirstWords`.
 */
export function repairTurns<Sent>(
  { system, turns, lastInstruction, isUserSilent }: UnfinishedTurns<Sent>,
  writer: BlockWriter<Sent>,
): void {
  if (turns[0]?.role !== "user") {
    const content = lastInstruction === undefined ? [] : system.splice(lastInstruction);
    turns.unshift({ role: "user", content });
  }
  if (turns.at(-1)?.role !== "user" && isUserSilent) {
    turns.push({ role: "user", content: [writer.text(noMessage)] });
  }
}

/** The turns after `words`; a first turn that stays empty gets a placeholder. */
export function withFirstWords<Sent>(
  turns: readonly WireTurn<Sent>[],
  words: readonly Sent[],
  writer: BlockWriter<Sent>,
): readonly WireTurn<Sent>[] {
  return turns.map(({ role, content }, index) => {
    if (index > 0) return { role, content };
    const joined = [...words, ...content];
    return { role, content: joined.length > 0 ? joined : [writer.text(noMessage)] };
  });
}
