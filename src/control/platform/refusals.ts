import type { Refusal } from "../../domain/errors/refusal.ts";
import {
  refusalQuerySchema,
  refusalSchema,
  refusalsSchema,
  type RefusalView,
} from "../contract/refusals.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { listScope, requireVisible } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { apiForm, viewAs } from "../values/api-form.ts";

/** The last refusals of each key with their reasons. */
export function refusalOperations({ refusals }: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "listRefusals",
      method: "GET",
      path: "/admin/v1/refusals",
      resource: "Refusals",
      summary: "List the last refusals, newest first",
      ...permissions.read,
      query: refusalQuerySchema,
      answer: refusalsSchema,
      async run({ call, query }) {
        const scope = listScope(call.principal, query.account_id);
        if (scope.isEmpty) return { data: [] };
        const filter = { keyId: query.key_id, accountId: scope.accountId };
        const found = await refusals.list(filter, query.limit);
        return { data: found.map(viewRefusal) };
      },
    }),
    defineOperation({
      id: "getRefusal",
      method: "GET",
      path: "/admin/v1/refusals/{id}",
      resource: "Refusals",
      summary: "Explain a refusal",
      description: "`id` is the `x-request-id` of the refused request.",
      ...permissions.read,
      answer: refusalSchema,
      async run({ call, parameters }) {
        const refusal = await refusals.find(parameters["id"] ?? "");
        const owned = refusal && { refusal, accountId: refusal.explanation.accountId };
        return viewRefusal(requireVisible(owned, call.principal, "refusal").refusal);
      },
    }),
  ];
}

function viewRefusal({ explanation, ...refusal }: Refusal): RefusalView {
  const { window, ...told } = explanation;
  return viewAs(
    refusalSchema,
    { ...told, ...refusal },
    { window: window === undefined ? null : apiForm(window) },
  );
}
