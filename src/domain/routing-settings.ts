/** Settings of retries, ejection and queues. */
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
  /** Limit on queued calls of one class at one pool. */
  readonly queueLimit: number;
  readonly ejection: EjectionSettings;
}

export interface EjectionSettings {
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
