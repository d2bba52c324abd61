import { createHash } from "node:crypto";
import type { Conversation, Options } from "../../domain/chat/conversation.ts";

/**
 * The conversation with the caller's names of its end users and caches as pseudonyms: a provider can
 * tell them apart within an account, and not across accounts. Chat's are sent as they are.
 */
export function withPseudonyms(conversation: Conversation, accountId: string): Conversation {
  const { wire, options } = conversation;
  if (wire === "chat" || !named.some((name) => options[name] !== undefined)) return conversation;
  const hidden = Object.fromEntries(
    named.flatMap((name) => {
      const value = options[name];
      return value === undefined ? [] : [[name, pseudonym(accountId, value)] as const];
    }),
  );
  return { ...conversation, options: { ...options, ...hidden } };
}

const named = [
  "user",
  "safetyIdentifier",
  "promptCacheKey",
] as const satisfies readonly (keyof Options)[];

/** Providers accept up to 64 characters. The id of an account is known here alone. */
function pseudonym(accountId: string, value: string): string {
  return createHash("sha256").update(`${accountId}\n${value}`).digest("hex").slice(0, 32);
}
