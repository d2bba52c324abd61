import type { SystemBlock, TextBlock, Turn } from "./converse-body.ts";

/** The text of a user turn that the provider requires and the caller did not send. */
export const noMessage: TextBlock = { text: "(no message)" };

export interface UnfinishedConversation {
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
