import type { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { Limits } from "../../src/domain/limits/plan.ts";
import type { CapacityClass, OpenedCall, UsageRecord } from "../../src/domain/usage/usage.ts";
import type { CallPlan, Fault } from "./scenario.ts";
import type { Script } from "./upstream-answer.ts";

/** One request that an upstream got. Times are those of the run. */
export interface Attempt {
  readonly id: string;
  readonly call: string;
  /** Of no call: the gateway asks whether the target answers. */
  readonly isProbe: boolean;
  readonly process: string;
  readonly upstream: string;
  readonly model: string;
  readonly startedAt: number;
  readonly fault: Fault | undefined;
  readonly script: Script;
  /** It began when the call was lost already. */
  mustEndAtOnce: boolean;
  headersAt: number | undefined;
  lastByteAt: number | undefined;
  endedAt: number | undefined;
  how: string | undefined;
}

/** What the outside of the gateways knows of one call. */
export class CallRecord {
  readonly plan: CallPlan;
  readonly attempts: Attempt[] = [];
  /** Undefined: no gateway lived to take it. */
  process: string | undefined;
  arrivedAt = 0;
  deadlineAt: number | undefined;
  leftAt: number | undefined;
  /** The gateway's process has ended under it. */
  crashedAt: number | undefined;
  endedAt: number | undefined;
  firstEventAt: number | undefined;
  /** What its caller got, by choice. */
  readonly texts: string[] = [];
  /** Whether its caller got all of an answer. */
  isAnswered = false;
  error: GatewayError | undefined;
  /** Said to the caller. */
  servedBy: CapacityClass | undefined;
  /** Of its key, when it came. */
  limits: Limits | undefined;
  /** Per minute, of the units that its key had for its model when it came. */
  guaranteedTokens = 0;
  opened: OpenedCall | undefined;
  closed: UsageRecord | undefined;

  constructor(plan: CallPlan) {
    this.plan = plan;
  }

  /** Whether nothing more will come of it. */
  get isOver(): boolean {
    return this.endedAt !== undefined || this.crashedAt !== undefined;
  }
}

export interface Violation {
  /** Of reliability: `I2`, `P1`; or a word for what the ledger and the routing promise. */
  readonly rule: string;
  readonly text: string;
  readonly call: string | undefined;
}
