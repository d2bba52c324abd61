import { nonEmpty } from "../json-fields.ts";

/** Names of the usual tier: those of OpenAI, of Anthropic, and of Groq. */
const usual: ReadonlySet<string> = new Set([
  "auto",
  "default",
  "standard",
  "standard_only",
  "on_demand",
]);

/**
 * The tier of a price by what an answer says. `asked` counts if the answer says nothing: most
 * servers tell which tier served. Undefined: nobody named one.
 */
export function billedTier(said: unknown, asked: string | undefined): string | undefined {
  const tier = nonEmpty(said);
  if (tier === undefined) return asked;
  return usual.has(tier) ? "default" : tier;
}

/** The tier that a request names, by its field; undefined: the provider's choice. */
export function askedTier(field: unknown): string | undefined {
  const tier = nonEmpty(field);
  if (tier === undefined || usual.has(tier)) return undefined;
  // OpenAI treats `fast` as `priority`.
  return tier === "fast" ? "priority" : tier;
}
