import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model } from "../../domain/model.ts";
import type { RefusalRule } from "../../domain/errors/refusal.ts";
import { retryHeaders } from "../../domain/limits/headers.ts";
import type { Call } from "../../snapshot/call.ts";
import { whyEnded } from "../../domain/waiting/wait.ts";
import type { BusyPool, BusyReason } from "./place.ts";

/** The answer to a caller when there is no place, or none in time. */
export function busyError(
  busy: BusyPool,
  { call, model }: { readonly call: Call; readonly model: Model },
): GatewayError {
  if (busy.busy === "left") return whyEnded(call.signal);
  const { key, publicId } = call.caller;
  const { rule, summary } = reasons[busy.busy];
  return new GatewayError("model_unavailable", {
    message: `The model \`${model.alias}\` is busy: all of its capacity is in use. ${adviceOf(busy)}`,
    headers: {
      ...retryHeaders(busy.retryAfterMs === Infinity ? undefined : busy.retryAfterMs),
      ...(busy.position !== undefined && {
        "x-sluice-queue-position": String(busy.position),
        "x-sluice-queue-wait-ms": String(Math.round(busy.waitedMs)),
      }),
    },
    explanation: {
      rule,
      summary,
      keyId: key.id,
      publicId,
      accountId: key.accountId,
      application: key.application,
      environment: call.environment.name,
      model: model.alias,
    },
  });
}

function adviceOf({ busy, retryAfterMs }: BusyPool): string {
  if (retryAfterMs !== Infinity) return "Please retry with exponential backoff.";
  return busy === "tokens"
    ? "A request of this size does not fit into the rest of its capacity."
    : "It serves only calls within provisioned throughput.";
}

const reasons: Readonly<
  Record<Exclude<BusyReason, "left">, { readonly rule: RefusalRule; readonly summary: string }>
> = {
  full: {
    rule: "pool_busy",
    summary: "All places for calls of this class at the pool or upstream are in use.",
  },
  limit: { rule: "pool_busy", summary: "The target is at its concurrency limit." },
  tokens: {
    rule: "pool_busy",
    summary: "The unsold tokens per minute of the pool are used up.",
  },
  "queue-full": {
    rule: "queue_full",
    summary: "The queue of the pool or upstream is full, and other calls had precedence.",
  },
  deadline: {
    rule: "queue_deadline",
    summary: "The call waited for a place as long as its plan allows (queue_timeout).",
  },
};
