import type { CallRouting } from "../../domain/usage/call-routing.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { Principal } from "../../domain/accounts/user.ts";
import type { CallDetail, CallRow, RoutingView } from "../contract/usage.ts";
import { roundedMs } from "../values/rounded-ms.ts";
import { timeText } from "../values/time-text.ts";

type Reader = Pick<Principal, "accountId">;

/** As somebody may see it: the upstreams' own identifiers of models are the operator's. */
export function viewCall(record: UsageRecord, reader: Reader): CallRow {
  return {
    id: record.id,
    started_at: timeText(record.startedAt),
    environment: record.environment,
    account_id: record.accountId,
    application_id: record.applicationId,
    application: record.application,
    key_id: record.keyId,
    model: record.model,
    target: record.target === undefined ? null : viewTarget(record.target, reader),
    class: record.capacityClass,
    input_tokens: record.inputTokens,
    output_tokens: record.outputTokens,
    cached_input_tokens: record.cachedInputTokens,
    cache_write_tokens: record.cacheWriteTokens ?? 0,
    usage_source: record.usageSource,
    outcome: record.outcome,
    status: record.status,
    code: record.code ?? null,
    is_streamed: record.isStreamed,
    attempts: record.attempts,
    first_event_ms: record.firstEventMs === undefined ? null : roundedMs(record.firstEventMs),
    duration_ms: roundedMs(record.durationMs),
    may_be_billed_twice: record.mayBeBilledTwice ?? false,
  };
}

/** With how it found its target: what lists and downloads of calls leave out. */
export function viewCallDetail(record: UsageRecord, reader: Reader): CallDetail {
  const { routing } = record;
  return {
    ...viewCall(record, reader),
    routing: routing === undefined ? null : viewRouting(routing, reader),
  };
}

function viewRouting({ candidates, attempts }: CallRouting, reader: Reader): RoutingView {
  return {
    candidates: candidates.map(({ target, model, why }) => {
      return { target: viewTarget(target, reader), model, why };
    }),
    attempts: attempts.map((attempt) => ({
      target: viewTarget(attempt.target, reader),
      model: attempt.model,
      start_ms: roundedMs(attempt.startMs),
      duration_ms: roundedMs(attempt.durationMs),
      outcome: attempt.outcome,
      may_be_billed: attempt.mayBeBilled,
      decision: attempt.decision ?? null,
    })),
  };
}

/** A target's id is `upstream/identifier`, and no name of an upstream has a slash. */
function viewTarget(id: string, { accountId }: Reader): string {
  return accountId === undefined ? id : (id.split("/", 1)[0] ?? "");
}
