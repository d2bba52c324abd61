/** How calls are tried again, and how targets that fail are left alone. */
export interface RoutingSettings {
  /** Most attempts of one call; each target may be tried once in any case. */
  readonly attempts: number;
  /** Retries at a target in ten seconds, in percent of its other attempts. */
  readonly retryBudgetPercent: number;
  /** Retries in ten seconds that a target always gets. */
  readonly retryFloor: number;
  readonly firstBackoffMs: number;
  /** Also the longest `Retry-After` of a provider that is waited for. */
  readonly longestBackoffMs: number;
  /** Whether answers say which target served. */
  readonly showsTarget: boolean;
  /** Most calls of one class that wait for one pool. */
  readonly queueLimit: number;
  readonly ejection: EjectionSettings;
}

export interface EjectionSettings {
  /** Failures one after the other. */
  readonly failures: number;
  /** Share of failures, in percent of at least `leastAttempts` in ten seconds. */
  readonly errorPercent: number;
  readonly leastAttempts: number;
  /** The first time; it doubles with every further time. */
  readonly firstMs: number;
  readonly longestMs: number;
}

export interface OverloadSettings {
  /** Delay of the event loop that is kept; above it calls are refused, least important first. */
  readonly loopDelayMs: number;
  /** Most calls under way at once. */
  readonly maxCalls: number;
}
