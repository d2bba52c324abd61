import type { Refusal } from "./refusal.ts";

export interface RefusalFilter {
  readonly keyId?: string | undefined;
  readonly accountId?: string | undefined;
}

/** How many refusals are kept. */
export interface RefusalBounds {
  /** For one key, one unknown public id, or the signed-in users of one account. */
  readonly perSubject: number;
  readonly limit: number;
}

/**
 * Bounds of all refusals of keys and of those of unknown callers. The latter have a fifth of the
 * room: public ids can be made up, and must not push out the refusals of real keys.
 */
export const refusalBounds = {
  keys: { perSubject: 20, limit: 8_000 },
  strangers: { perSubject: 20, limit: 2_000 },
} satisfies Record<string, RefusalBounds>;

/** Whose refusals it is kept among, and under which name. */
export function subjectOf({ explanation }: Refusal): {
  readonly of: keyof typeof refusalBounds;
  readonly subject: string;
} {
  const { keyId, publicId, accountId } = explanation;
  if (keyId !== undefined) return { of: "keys", subject: keyId };
  return { of: "strangers", subject: publicId ?? accountId ?? "" };
}
