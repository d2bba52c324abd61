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
  readonly uncapped: UncappedOutput;
  /**
   * How many times the limit of tokens all calls under way may use beyond what is charged for them,
   * under `debt`.
   */
  readonly overrunFactor: number;
}

/**
 * What holds for calls that do not cap their output. `debt`: a guess is reserved, and what they use
 * beyond the limit is paid by the minutes that follow. `cap`: the guess is sent upstream as the cap.
 * `maximum`: all that the model can answer is reserved.
 */
export const uncappedOutputs = ["debt", "cap", "maximum"] as const;
export type UncappedOutput = (typeof uncappedOutputs)[number];
