import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { Target } from "../../domain/model.ts";
import { mayBeBilled } from "../../routing/retry.ts";
import { type CountedUsage, sourceOf } from "./call-usage.ts";

/** What a failed attempt was to answer, and how long it took. */
export interface Unanswered {
  readonly target: Target;
  /** The part of the call, from 0 to 1. */
  readonly share: number;
  readonly elapsedMs: number;
}

/** The tokens that the whole call may use. */
interface ReservedTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** What a failed attempt has used; undefined: nothing that the provider may bill. */
export function usageOfFailed(
  { kind, status, code, usage }: UpstreamFailureDetails,
  { target, share, elapsedMs }: Unanswered,
  most: ReservedTokens,
): CountedUsage | undefined {
  if (usage !== undefined) return { usage: { ...usage, target }, source: sourceOf(usage) };
  if (!mayBeBilled(kind, false)) return undefined;
  // A server or a proxy before it may say itself that there was a timeout, and at any time.
  const isCutShort = kind === "connection-lost" || kind === "broken-answer";
  const isBrokenOff = isCutShort || (status ?? code) !== undefined;
  const generated = isBrokenOff ? generatedWithin(elapsedMs, most.outputTokens) : most.outputTokens;
  // What breaks at once is an outage, or a page of a proxy: nothing was read either.
  if (isBrokenOff && generated === 0) return undefined;
  const inputTokens = Math.ceil(most.inputTokens * share);
  const outputTokens = Math.ceil(generated * share);
  return {
    usage: { inputTokens, outputTokens, cachedInputTokens: 0, reasoningTokens: 0, target },
    source: "estimated",
  };
}

/**
 * Tokens that a fast model generates in a second, for an answer that was broken off. Whole seconds
 * count, so that an upstream that breaks every connection at once costs its callers nothing.
 */
const generatedPerSecond = 200;

export function generatedWithin(elapsedMs: number, mostTokens: number): number {
  return Math.min(mostTokens, Math.floor(elapsedMs / 1_000) * generatedPerSecond);
}
