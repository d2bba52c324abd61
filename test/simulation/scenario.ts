import type { CapacityMode, Pool } from "../../src/domain/limits/capacity.ts";
import type { Key } from "../../src/domain/keys/key.ts";
import type { Model } from "../../src/domain/model.ts";
import type { Limits, Plan } from "../../src/domain/limits/plan.ts";
import type { RoutingSettings } from "../../src/domain/settings.ts";
import type { Timeouts } from "../../src/domain/upstream-settings.ts";

/** The wall clock at the begin of a run. */
export const startOfTime = Date.UTC(2026, 0, 1);

/**
 * One run as plain data, determined by its seed. Each call has its own random streams, so that
 * leaving out other calls or events changes as little as possible.
 */
export interface Scenario {
  readonly seed: number;
  readonly gateways: readonly GatewayPlan[];
  readonly limiter: LimiterPlan;
  readonly upstreams: readonly UpstreamPlan[];
  readonly pools: readonly Pool[];
  readonly models: readonly Model[];
  readonly routing: RoutingSettings;
  /** Concurrent calls in one gateway. */
  readonly maxCalls: number;
  readonly keys: readonly KeyPlan[];
  readonly calls: readonly CallPlan[];
  readonly events: readonly EventPlan[];
}

export interface GatewayPlan {
  readonly name: string;
  /** The monotonic clock at the begin of the run. */
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export interface LimiterPlan {
  /**
   * `local` answers at once, like a store in the gateway's process; `networked` is a store that
   * gateways share.
   */
  readonly kind: "local" | "networked";
  /** The delay in one direction. */
  readonly delayMs: number;
  /** The share of messages that take up to twenty times as long. */
  readonly slowShare: number;
}

export interface UpstreamPlan {
  readonly name: string;
  readonly kind: "openai" | "bedrock";
  readonly timeouts: Timeouts;
  readonly maxInFlight: number;
  /** Undefined: a stream whose caller has left is aborted. */
  readonly drain: { readonly timeoutMs: number; readonly limit: number } | undefined;
  readonly embeddingBatchLimit: number;
  readonly thinkMs: number;
  readonly pieceMs: number;
  /** The share of requests with a fault in normal operation. */
  readonly faultShare: number;
  readonly tokensPerByte: number;
}

export interface KeyPlan {
  readonly key: Key;
  /** The public ids of its secrets: two during a rotation. */
  readonly publicIds: readonly string[];
  readonly limits: Limits;
  /** How long its calls wait in the queue of a pool. */
  readonly queueTimeoutMs: number;
  readonly uncapped: Pick<Plan, "uncapped" | "overrunFactor">;
}

export interface CallPlan {
  readonly id: string;
  readonly atMs: number;
  /** Position in `gateways`; the next running one takes it. */
  readonly gateway: number;
  readonly key: string;
  readonly secret: number;
  readonly alias: string;
  readonly kind: "whole" | "stream" | "embedding";
  readonly promptBytes: number;
  /** Embeddings: inputs; chat: choices. */
  readonly parts: number;
  readonly cap: number | undefined;
  /** The tokens of the model's whole answer. */
  readonly outputTokens: number;
  readonly capacity: CapacityMode;
  readonly deadlineMs: number | undefined;
  readonly leave: LeavePlan | undefined;
  /** The time of its reader for each batch. */
  readonly readMs: number;
  /** The fault of its requests at any upstream, as if caused by the input. */
  readonly fault?: Fault;
  /** The name of its session; undefined: its targets are drawn. */
  readonly session?: string | undefined;
}

export interface LeavePlan {
  /** Since the call arrived; undefined: after `batches`. */
  readonly afterMs: number | undefined;
  readonly batches: number;
  /** Whether the stream is cancelled before the signal fires. */
  readonly cancelsFirst: boolean;
}

export const faults = [
  "refused",
  "hanging-connect",
  "reset-before-headers",
  "reset-after-headers",
  "throttled",
  "throttled-with-time",
  "failed",
  "overloaded",
  "error-page",
  "bad-credential",
  "stale-credential",
  "skewed",
  "invalid",
  "overflow",
  "content-refused",
  "unknown-model",
  "redirect",
  "stall-before-headers",
  "stall-after-headers",
  "stall-mid",
  "stall-halfway",
  "cut-mid",
  "reset-mid",
  "garbage",
  "error-mid",
  "malformed-event",
  "empty",
  "compressed",
  "no-usage",
  "usage-twice",
  "slow",
  "never-closes",
  "beyond-cap",
] as const;
export type Fault = (typeof faults)[number];

export type EventPlan = { readonly atMs: number } & (
  | ({ readonly type: "faults"; readonly upstream: string } & FaultSpan)
  | { readonly type: "crash"; readonly gateway: number; readonly downMs: number }
  | { readonly type: "wall-jump"; readonly gateway: number; readonly byMs: number }
  | { readonly type: "limits"; readonly key: string; readonly limits: Limits }
  | { readonly type: "units"; readonly key: string; readonly units: number }
  | { readonly type: "revoke"; readonly key: string }
  | { readonly type: "places"; readonly upstream: string; readonly maxInFlight: number }
  | { readonly type: "limiter-slow"; readonly forMs: number; readonly delayMs: number }
  | { readonly type: "database-down"; readonly forMs: number }
);

export interface FaultSpan {
  readonly forMs: number;
  readonly fault: Fault;
  readonly share: number;
  /** Whether the share is exact and evenly spread, not random. */
  readonly isEven?: boolean;
}
