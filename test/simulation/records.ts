import type { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { Limits } from "../../src/domain/limits/plan.ts";
import type { CapacityClass, OpenedCall, UsageRecord } from "../../src/domain/usage/usage.ts";
import type { CallPlan, Fault } from "./scenario.ts";
import type { Script } from "./upstream-answer.ts";

/** One request to an upstream, in the time of the run. */
export interface Attempt {
  readonly id: string;
  readonly call: string;
  /** A probe of the gateway, without a call. */
  readonly isProbe: boolean;
  readonly process: string;
  readonly upstream: string;
  readonly model: string;
  readonly startedAt: number;
  readonly fault: Fault | undefined;
  readonly script: Script;
  /** Whether it began when the call had already failed. */
  mustEndAtOnce: boolean;
  headersAt: number | undefined;
  lastByteAt: number | undefined;
  endedAt: number | undefined;
  how: string | undefined;
}

/** One call as seen from outside the gateways. */
export class CallRecord {
  readonly plan: CallPlan;
  readonly attempts: Attempt[] = [];
  /** Undefined: no gateway was running. */
  process: string | undefined;
  arrivedAt = 0;
  deadlineAt: number | undefined;
  leftAt: number | undefined;
  /** The time when its gateway's process crashed. */
  crashedAt: number | undefined;
  endedAt: number | undefined;
  firstEventAt: number | undefined;
  /** The texts that its caller got, by choice. */
  readonly texts: string[] = [];
  /** Whether its caller got a complete answer. */
  isAnswered = false;
  error: GatewayError | undefined;
  /** The class in the answer to the caller. */
  servedBy: CapacityClass | undefined;
  /** The limits of its key on arrival. */
  limits: Limits | undefined;
  /** Tokens per minute of its key's units for its model, on arrival. */
  guaranteedTokens = 0;
  opened: OpenedCall | undefined;
  closed: UsageRecord | undefined;

  constructor(plan: CallPlan) {
    this.plan = plan;
  }

  /** Whether the call is over. */
  get isOver(): boolean {
    return this.endedAt !== undefined || this.crashedAt !== undefined;
  }
}

export interface Violation {
  /** A rule, such as `I2` or `P1`, or a word for ledger and routing. */
  readonly rule: string;
  readonly text: string;
  readonly call: string | undefined;
}
