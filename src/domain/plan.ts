/** What a key may use in any 60 seconds. */
export interface Limits {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
}

/** A named set of limits. A custom plan has none of its own: each key on it brings its values. */
export interface Plan {
  readonly name: string;
  readonly limits: Limits | undefined;
  /** Whether keys on this plan may buy provisioned throughput. */
  readonly provisioned: boolean;
  /** How long a call waits for a place when its pool or upstream is full. */
  readonly queueTimeoutMs: number;
  /** Whether answers are kept for calls that are repeated with their `Idempotency-Key`. */
  readonly isIdempotent: boolean;
}
