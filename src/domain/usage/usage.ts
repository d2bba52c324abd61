import type { Target } from "../model.ts";
import type { Budget, Charge } from "../money/budget.ts";
import type { CallRouting } from "./call-routing.ts";

/** Tokens of one call, as an upstream reports them. */
export interface TokenUsage {
  /** All input tokens, cached ones included. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Input tokens read from the upstream's cache. */
  readonly cachedInputTokens: number;
  /** Input tokens written to the cache, billed separately; undefined: none. */
  readonly cacheWriteTokens?: number | undefined;
  /** The part of them that the cache keeps for an hour, at a price of its own; undefined: none. */
  readonly cacheWrite1hTokens?: number | undefined;
  /** The service tier that the upstream says it served in; undefined: it does not say. */
  readonly serviceTier?: string | undefined;
  /** Output tokens that the caller did not see as text. */
  readonly reasoningTokens: number;
  /** Set if the upstream's counts contradicted each other or the call, and were limited. */
  readonly isBounded?: boolean | undefined;
  /** What the caller is told that the call costs, in USD; undefined: nothing. */
  readonly costUsd?: string | undefined;
  /** Where it was used; undefined: at the target that served the call. */
  readonly target?: Target | undefined;
  /** Set if these are the counts of several requests, whose prices may differ. */
  readonly requests?: readonly TokenUsage[] | undefined;
}

export const usageSources = ["upstream", "counted", "estimated", "bounded"] as const;

/**
 * The origin of token counts. Those of an upstream win; `bounded` are its counts where they were
 * more than the call can have used; `counted` is the delivered output when it reported none;
 * `estimated` is a guess.
 */
export type UsageSource = (typeof usageSources)[number];

/** The capacity that served a call. */
export type CapacityClass = "provisioned" | "spillover" | "on-demand";

export const callDialects = ["chat", "responses", "messages", "embeddings"] as const;

/** The wire format of the caller's request. */
export type CallDialect = (typeof callDialects)[number];

export const callOutcomes = ["completed", "failed", "abandoned", "interrupted"] as const;

/** How a call ended; `interrupted`: the gateway's process ended first. */
export type CallOutcome = (typeof callOutcomes)[number];

/** How a call came that no application made. */
export type CallOrigin = "playground";

export type CallTags = Readonly<Record<string, string>>;

/** One row of the ledger: one call. */
export interface UsageRecord {
  readonly id: string;
  /** Arrival of the call, milliseconds since the epoch. */
  readonly startedAt: number;
  readonly environment: string;
  readonly accountId: string;
  readonly applicationId: string;
  /** Name of the application at the time. */
  readonly application: string;
  readonly keyId: string;
  readonly model: string;
  readonly dialect: CallDialect;
  /** Target of the last attempt; undefined if there was none. */
  readonly target: string | undefined;
  readonly capacityClass: CapacityClass;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  /** Undefined: none, or an old row. */
  readonly cacheWriteTokens?: number | undefined;
  /** The part of them that the cache keeps for an hour. Undefined: none. */
  readonly cacheWrite1hTokens?: number | undefined;
  /** That vectors were made of. Undefined: none. */
  readonly images?: number | undefined;
  /** The provider's service tier. Undefined: not known. */
  readonly serviceTier?: string | undefined;
  /** In nano-USD. Undefined: something that was used has no price, which is not the same as 0. */
  readonly costNano?: number | undefined;
  /** The price table of the cost. Undefined: no price was needed, or there was none. */
  readonly priceVersion?: number | undefined;
  /** The cost by the last run that priced the call again. Undefined: it has its first. */
  readonly repricedNano?: number | undefined;
  readonly usageSource: UsageSource;
  readonly outcome: CallOutcome;
  /** HTTP status sent to the caller; 499 if it left before an answer. */
  readonly status: number;
  /** Error code, if the call failed. */
  readonly code: string | undefined;
  readonly isStreamed: boolean;
  readonly attempts: number;
  /** Milliseconds from arrival to the first event; undefined when there was none. */
  readonly firstEventMs: number | undefined;
  readonly durationMs: number;
  /** Undefined in the usual case: one target, one attempt, answered. */
  readonly routing?: CallRouting | undefined;
  /** Whether the provider may also bill an attempt whose answer nobody received. */
  readonly mayBeBilledTwice?: boolean | undefined;
  /** Tokens that admission reserved; undefined for a refused call and in old rows. */
  readonly reservedTokens?: number | undefined;
  /** What it used of weighted limits, for a start after a crash, not stored; undefined: no weights. */
  readonly planTokens?: number | undefined;
  /** Undefined: an application made it, with a secret of the key. */
  readonly via?: CallOrigin | undefined;
  /** A pseudonym, or the name itself if the file says so. Undefined: none was named. */
  readonly endUser?: string | undefined;
  /** By the keys that the file allows. Undefined: none. */
  readonly tags?: CallTags | undefined;
  /** For the sums of budgets alone, not stored with the row. Undefined: it was under none. */
  readonly charge?: Charge | undefined;
  /** The budget that had too little left for it, as it was then; for alerts alone, not stored. */
  readonly refusedBy?: Pick<Budget, "id" | "limitNano"> | undefined;
}

/** The most that a token of a call can count in its limits, in hundredths. */
export interface DearestWeights {
  readonly input: number;
  readonly output: number;
}

/** A running call: what is known before it is sent to an upstream. */
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
  | "dialect"
  | "capacityClass"
  | "isStreamed"
  | "reservedTokens"
  | "via"
  | "endUser"
  | "tags"
  | "priceVersion"
  | "charge"
> {
  /** The reserved estimate, billed if the process dies during the call. */
  readonly inputTokens: number;
  /** For limits after a crash. Undefined: each token counts one. */
  readonly weights?: DearestWeights | undefined;
  /** What it may cost, charged if the process dies during the call. Undefined: no price. */
  readonly costNano?: number | undefined;
}

/**
 * Records calls. All records of one turn of the event loop are written together at its end, and
 * survive a kill once the promise has resolved. The calls of a turn share one promise.
 */
export interface CallLedger {
  /** False when there is no room for another call; calls are then refused. */
  readonly hasRoom: boolean;
  /** Awaited before anything is sent to an upstream. After a failure the call must not run. */
  open(call: OpenedCall): Promise<RecordFailure>;
  /** Records the output so far, in case the process dies before the call is closed. */
  checkpoint(callId: string, delivered: { readonly outputTokens: number }): void;
  /** Awaited before the end of the answer is sent; after a failure the write is retried. */
  close(record: UsageRecord): Promise<RecordFailure>;
}

/** Why a record could not be written; undefined: it was written. */
export type RecordFailure = Error | undefined;

/** Dimensions to group usage by. */
export const usageDimensions = [
  "environment",
  "account",
  "application",
  "key",
  "model",
  "dialect",
  "target",
  "outcome",
  "status",
  "code",
  "class",
] as const;
export type UsageDimension = (typeof usageDimensions)[number];

/** Those that only calls have, not their sums. */
export type CallDimension = "end_user" | `tag:${string}`;

export type GroupDimension = UsageDimension | CallDimension;

export function isOfCalls(dimension: GroupDimension): dimension is CallDimension {
  return dimension === "end_user" || dimension.startsWith("tag:");
}

/** Whether only the calls tell what a question asks for, not their sums. */
export function needsCalls(
  filter: { readonly endUsers?: unknown; readonly tag?: unknown },
  by: readonly GroupDimension[],
): boolean {
  return filter.endUsers !== undefined || filter.tag !== undefined || by.some(isOfCalls);
}

/** Those whose values are ids of what has a name. */
export const namedDimensions = ["account", "application", "key"] as const;
export type NamedDimension = (typeof namedDimensions)[number];

/** What the groups of a series are chosen by. */
export const usageRanks = ["calls", "tokens", "cost"] as const;
export type UsageRank = (typeof usageRanks)[number];

/** Steps of reports. Sums are stored by hour and by day. */
export const usageSteps = ["minute", "hour", "day"] as const;
export type UsageStep = (typeof usageSteps)[number];
