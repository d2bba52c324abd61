import type { SystemBlock, TextBlock, Turn } from "./converse-body.ts";

/** Stands where the provider wants a turn of the user and the caller has no words for one. */
export const noMessage: TextBlock = { text: "(no message)" };

export interface UnfinishedConversation {
  readonly system: SystemBlock[];
  readonly turns: Turn[];
  /** Where in `system` the last instruction begins, if the assistant has said nothing since. */
  readonly lastInstruction: number | undefined;
  /** Whether the user has spoken last, without words. */
  readonly isUserSilent: boolean;
}

/**
 * Makes of what OpenAI takes a conversation that begins and, unless the assistant is to go on, ends
 * with the user: an instruction behind all turns becomes the user's turn, else silence becomes one.
 * The first turn is left empty where the assistant begins; see `withFirstWords`.
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

/** The turns with `words` before all others; a first turn that stays empty says that it is. */
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
