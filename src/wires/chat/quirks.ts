import { keysOf } from "../../domain/json-fields.ts";
import abouts from "./quirks.json" with { type: "json" };

/**
 * What servers of the chat wire do that OpenAI does not, and that no answer shows in time: how a request
 * must be written, or how long its answer may take. Deviations of answers are read without being named.
 */
export type Quirk = keyof typeof abouts;

/** What Sluice does about each. */
export const quirks: Readonly<Record<Quirk, string>> = abouts;

export const quirkNames: readonly Quirk[] = keysOf(abouts);
