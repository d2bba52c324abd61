import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";
import type { Delivered } from "../spool/spool-record.ts";

/** The record of a call that was open when its process ended. */
export function interruptedCall(call: OpenedCall, delivered: Delivered | undefined): UsageRecord {
  const lastSeenAt = delivered?.at ?? call.startedAt;
  return {
    ...call,
    target: undefined,
    outputTokens: delivered?.outputTokens ?? 0,
    cachedInputTokens: 0,
    usageSource: "estimated",
    outcome: "interrupted",
    status: 500,
    code: "gateway_interrupted",
    attempts: 1,
    firstEventMs: undefined,
    durationMs: Math.max(0, lastSeenAt - call.startedAt),
  };
}
