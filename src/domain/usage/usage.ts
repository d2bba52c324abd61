import type { CallRouting } from "./call-routing.ts";

/** Tokens of one call, as an upstream reports them. */
export interface TokenUsage {
  /** All input tokens, cached ones included. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of the input tokens: read from the upstream's cache. */
  readonly cachedInputTokens: number;
  /** Another part of them: written to the cache, at a price of its own; undefined: none. */
  readonly cacheWriteTokens?: number | undefined;
  /** Part of the output tokens that the caller did not see as text. */
  readonly reasoningTokens: number;
}

/**
 * Where token counts come from. Counts of an upstream always win; `counted` is what was delivered,
 * piece by piece, when the upstream did not say; `estimated` is a guess.
 */
export type UsageSource = "upstream" | "counted" | "estimated";

/** Which capacity served a call. */
export type CapacityClass = "provisioned" | "spillover" | "on-demand";

/** How a call ended; `interrupted`: the gateway's process ended first. */
export type CallOutcome = "completed" | "failed" | "abandoned" | "interrupted";

/** One row of the ledger: one call. */
export interface UsageRecord {
  readonly id: string;
  /** Milliseconds since the epoch, when the call arrived. */
  readonly startedAt: number;
  readonly environment: string;
  readonly accountId: string;
  readonly applicationId: string;
  /** Name of the application at the time. */
  readonly application: string;
  readonly keyId: string;
  readonly model: string;
  /** Id of the target that served or failed last; undefined when none was tried. */
  readonly target: string | undefined;
  readonly capacityClass: CapacityClass;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  /** Undefined: none, or an old row. */
  readonly cacheWriteTokens?: number | undefined;
  readonly usageSource: UsageSource;
  readonly outcome: CallOutcome;
  /** HTTP status the caller got; 499 when it left before an answer. */
  readonly status: number;
  /** Error code, when the call failed. */
  readonly code: string | undefined;
  readonly isStreamed: boolean;
  readonly attempts: number;
  /** Milliseconds from arrival to the first event; undefined when there was none. */
  readonly firstEventMs: number | undefined;
  readonly durationMs: number;
  /** How it found its target; undefined for the plain case: one target, one attempt, answered. */
  readonly routing?: CallRouting | undefined;
  /** Whether an attempt that nobody got anything of may be on the provider's bill as well. */
  readonly mayBeBilledTwice?: boolean;
  /** What admission reserved for it; undefined for a call that was refused, and in old rows. */
  readonly reservedTokens?: number | undefined;
}

/** A call that is under way: what is known before it is sent to an upstream. */
export interface OpenedCall extends Pick<
  UsageRecord,
  | "id"
  | "startedAt"
  | "environment"
  | "accountId"
  | "applicationId"
  | "application"
  | "keyId"
  | "model"
  | "capacityClass"
  | "isStreamed"
  | "reservedTokens"
> {
  /** As reserved: what is billed when nobody lives to say better. */
  readonly inputTokens: number;
}
