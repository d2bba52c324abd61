import type { Refusal, RefusalWindow } from "../../domain/errors/refusal.ts";
import {
  refusalQuerySchema,
  refusalSchema,
  refusalsSchema,
  type RefusalView,
} from "../contract/refusals.ts";
import { defineOperation } from "../operation/define-operation.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { listScope, requireVisible } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { roundedMs } from "../values/rounded-ms.ts";
import { timeText } from "../values/time-text.ts";

/** Why the gateway refused: the last refusals of each key, as long as the process lives. */
export function refusalOperations({ refusals }: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "listRefusals",
      method: "GET",
      path: "/admin/v1/refusals",
      resource: "Refusals",
      summary: "List the last refusals, newest first",
      ...permissions.read,
      status: 200,
      query: refusalQuerySchema,
      answer: refusalsSchema,
      run({ call, query }) {
        const scope = listScope(call.principal, query.account_id);
        if (scope.isEmpty) return { data: [] };
        const filter = { keyId: query.key_id, accountId: scope.accountId };
        return { data: refusals.list(filter, query.limit).map(viewRefusal) };
      },
    }),
    defineOperation({
      id: "getRefusal",
      method: "GET",
      path: "/admin/v1/refusals/{id}",
      resource: "Refusals",
      summary: "Explain a refusal",
      description: "`id` is what the header `x-request-id` of the refused request said.",
      ...permissions.read,
      status: 200,
      answer: refusalSchema,
      run({ call, parameters }) {
        const refusal = refusals.find(parameters["id"] ?? "");
        const owned = refusal && { refusal, accountId: refusal.explanation.accountId };
        return viewRefusal(requireVisible(owned, call.principal, "refusal").refusal);
      },
    }),
  ];
}

function viewRefusal({ id, at, status, code, explanation }: Refusal): RefusalView {
  return {
    id,
    at: timeText(at),
    status,
    code,
    rule: explanation.rule,
    summary: explanation.summary,
    key_id: explanation.keyId ?? null,
    public_id: explanation.publicId ?? null,
    account_id: explanation.accountId ?? null,
    application: explanation.application ?? null,
    environment: explanation.environment ?? null,
    model: explanation.model ?? null,
    window: explanation.window === undefined ? null : viewWindow(explanation.window),
  };
}

function viewWindow(window: RefusalWindow): RefusalView["window"] {
  return {
    scope_id: window.scopeId,
    limit: window.limit,
    used: window.used,
    requested: window.requested,
    free_at: timeText(window.freeAt),
    slots: window.slots.map(({ ageMs, requests, tokens }) => ({
      age_ms: roundedMs(ageMs),
      requests,
      tokens,
    })),
  };
}
