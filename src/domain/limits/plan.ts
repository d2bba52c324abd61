import type { TokenWeights } from "./token-weights.ts";

/** The limits of a key in any 60 seconds. */
export interface Limits {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
}

/** A named set of limits. A custom plan has none: each of its keys has its own. */
export interface Plan {
  readonly name: string;
  readonly limits: Limits | undefined;
  /** Undefined: its limits are enforced. */
  readonly mode?: (typeof planModes)[number] | undefined;
  /** Undefined: each token counts one. */
  readonly tokenWeights?: TokenWeights | undefined;
  /** Whether keys on this plan may buy provisioned throughput. */
  readonly provisioned: boolean;
  /** How long a call waits for a place when its pool or upstream is full. */
  readonly queueTimeoutMs: number;
  /** Whether answers are stored for repeats with the same `Idempotency-Key`. */
  readonly isIdempotent: boolean;
  /** How long responses are stored for requests that refer to them; 0: they are not. */
  readonly responsesKeepMs: number;
  readonly uncapped: UncappedOutput;
  /** How far running calls may exceed their charges under `debt`, as a multiple of the limit. */
  readonly overrunFactor: number;
  /** What happens while the store that several processes share does not decide. */
  readonly whenLimitsUnavailable: UndecidedLimits;
  /** The header in which a key's requests name their end users. Undefined: in none. */
  readonly endUserHeader?: string | undefined;
  /** The limits of each end user of a key. Undefined: they have none of their own. */
  readonly eachEndUser?: Limits | undefined;
}

/** `audit`: the limits of a plan refuse nothing, and what they would refuse is told. */
export const planModes = ["enforce", "audit"] as const;

/** `local`: each process grants its share of the limits; `closed`: calls are refused. */
export const undecidedLimits = ["local", "closed"] as const;
export type UndecidedLimits = (typeof undecidedLimits)[number];

/**
 * The rule for calls without an output cap. `debt`: an estimate is reserved, and use beyond the
 * limit is paid by the following minutes. `cap`: the estimate is sent upstream as the cap.
 * `maximum`: the model's longest answer is reserved.
 */
export const uncappedOutputs = ["debt", "cap", "maximum"] as const;
export type UncappedOutput = (typeof uncappedOutputs)[number];
