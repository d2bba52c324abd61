import type { Secret } from "./keys/secret.ts";
import type { SamplingSettings } from "./tracing.ts";

/** Settings of retries, targets that are out, and queues. */
export interface RoutingSettings {
  /** Limit on attempts of one call; each target may be tried at least once. */
  readonly attempts: number;
  /** Retries at a target within ten seconds, in percent of its other attempts. */
  readonly retryBudgetPercent: number;
  /** Retries within ten seconds that a target always gets. */
  readonly retryFloor: number;
  readonly firstBackoffMs: number;
  /** Also the longest `Retry-After` that a call waits for. */
  readonly longestBackoffMs: number;
  /** Whether answers name the target that served them. */
  readonly showsTarget: boolean;
  /** Whether answers say what the call costs. */
  readonly showsCost: boolean;
  /** Whether calls of one session prefer one target. */
  readonly hasSessionAffinity: boolean;
  /** Limit on queued calls of one class at one pool. */
  readonly queueLimit: number;
  readonly out: OutSettings;
}

export interface OutSettings {
  /** Failures in a row. */
  readonly failures: number;
  /** Share of failures, in percent of at least `leastAttempts` in ten seconds. */
  readonly errorPercent: number;
  readonly leastAttempts: number;
  /** First duration; it doubles each time. */
  readonly firstMs: number;
  readonly longestMs: number;
}

export interface OverloadSettings {
  /** Target delay of the event loop; above it calls are refused, least important first. */
  readonly loopDelayMs: number;
  /** Limit on running calls. */
  readonly maxCalls: number;
}

/** How answers are stored for replays with the same `Idempotency-Key`. */
export interface IdempotencySettings {
  /** Limit on an answer that can be stored and replayed. */
  readonly answerLimitBytes: number;
  /** Limit on bytes of answers that are held to be stored. */
  readonly memoryLimitBytes: number;
  /** Limit on stored bytes; the oldest answers of the largest user are evicted first. */
  readonly storageLimitBytes: number;
  readonly keepMs: number;
  /** Most calls of a process that wait for the answer of an equal one. */
  readonly waitingLimit: number;
}

/** Outcome of an answer to a call with an `Idempotency-Key`. */
export type AnswerResult = "stored" | "too_large" | "evicted" | "replayed";

/** Where telemetry is sent over OTLP, and what of it. */
export interface OtlpSettings extends SamplingSettings {
  /** Without `/v1/traces`. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, Secret>>;
  readonly timeoutMs: number;
  readonly sendsTraces: boolean;
  readonly sendsMetrics: boolean;
  /** Calls that take longer are always kept. */
  readonly slowCallMs: number;
  /** Ended calls that wait for the exporter, in each process. */
  readonly queueLimit: number;
  readonly metricsIntervalMs: number;
}

/** Where events of the ledger are delivered. */
export interface LedgerEventSettings {
  readonly webhook: WebhookSettings | undefined;
  readonly file: EventFileSettings | undefined;
}

export interface WebhookSettings {
  readonly url: string;
  /** `whsec_` and the key in base64. */
  readonly secret: Secret;
  /** Most events in one request. */
  readonly batchEvents: number;
  readonly timeoutMs: number;
  readonly longestPauseMs: number;
}

export interface EventFileSettings {
  readonly path: string;
  /** Size from which a new file is begun. */
  readonly rotateBytes: number;
}

/** How long data is kept, and how it is removed. */
export interface RetentionSettings {
  readonly callsMs: number;
  readonly hoursMs: number;
  readonly daysMs: number;
  readonly auditMs: number;
  readonly revokedKeysMs: number;
  readonly intervalMs: number;
  /** Limit on rows that one transaction removes from a table. */
  readonly batchRows: number;
}
