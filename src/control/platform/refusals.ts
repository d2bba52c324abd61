import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { RefusedBudget, Refusal } from "../../domain/errors/refusal.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { Principal } from "../../domain/principal.ts";
import {
  explanationSchema,
  refusalQuerySchema,
  refusalSchema,
  refusalsSchema,
  type RefusalView,
} from "../contract/refusals.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { fromStorageError } from "../operation/refusals.ts";
import { listScope, maySee, requireVisible } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { viewCallDetail } from "../usage/call-row.ts";
import { apiForm, timeText, viewAs } from "../values/api-form.ts";

/** The last refusals of each key with their reasons. */
export function refusalOperations(services: AdminServices): readonly Operation[] {
  const { refusals } = services;
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
    defineOperation({
      id: "explainRequest",
      method: "GET",
      path: "/admin/v1/explain/{id}",
      resource: "Refusals",
      summary: "Explain a request: its row and its refusal",
      description: "`id` is the `x-request-id` of the request.",
      ...permissions.read,
      answer: explanationSchema,
      async run({ call: { principal }, parameters }) {
        const id = parameters["id"] ?? "";
        const refusal = await readRefusal(id, principal, services);
        const row = await readCall(id, principal, services);
        // What is known already is worth more than the failure of the ledger.
        if ("failure" in row && refusal === null) throw row.failure;
        const call = "failure" in row ? null : row.call;
        if (call === null && refusal === null) throw unknownRequest();
        const names = "failure" in row ? noNames : await readNames(call ?? refusal, services);
        return { id, call, refusal, names, is_ledger_read: !("failure" in row) };
      },
    }),
  ];
}

async function readRefusal(id: string, reader: Principal, { refusals }: AdminServices) {
  const refusal = await refusals.find(id);
  if (refusal === undefined || !maySee(reader, refusal.explanation.accountId)) return null;
  return viewRefusal(refusal);
}

async function readCall(id: string, reader: Principal, { reports, prices }: AdminServices) {
  try {
    // A call refused because of its targets was attempted, so the ledger has its attempts.
    const record = await reports.call(id);
    const isVisible = record !== undefined && maySee(reader, record.accountId);
    return { call: isVisible ? await viewCallDetail(record, reader, prices) : null };
  } catch (error) {
    const failure = fromStorageError(error);
    if (failure instanceof GatewayError) return { failure };
    throw error;
  }
}

const noNames = { account: null, key: null };

async function readNames(
  request: Pick<RefusalView, "account_id" | "key_id"> | null,
  { store }: AdminServices,
) {
  const { account_id: account, key_id: key } = request ?? { account_id: null, key_id: null };
  const nameOf = async (dimension: "account" | "key", id: string | null) =>
    id === null ? null : ((await store.names(dimension, [id])).get(id) ?? null);
  return { account: await nameOf("account", account), key: await nameOf("key", key) };
}

function unknownRequest(): GatewayError {
  return new GatewayError("not_found", {
    message:
      "There is no record of this request. Requests that are not calls, such as lists of models, and " +
      "errors before a key is read (404, 405, 431) are not recorded. Of each key, the last 20 errors " +
      "(of frequent ones, fewer) are kept until a restart, by the gateway that refused: ask there. If the request has " +
      "just ended, try again in a second.",
  });
}

function viewRefusal({ explanation, isAudited = false, ...refusal }: Refusal): RefusalView {
  const { window, budget, ...told } = explanation;
  return viewAs(
    refusalSchema,
    { ...told, ...refusal, isAudited },
    {
      window: window === undefined ? null : apiForm(window),
      budget: budget === undefined ? null : viewBudget(budget),
    },
  );
}

function viewBudget(budget: RefusedBudget): RefusalView["budget"] {
  const { limitNano, spentNano, reservedNano, requestNano, ...facts } = budget;
  return {
    ...apiForm(facts),
    resets_at: timeText(facts.resetsAt),
    limit_usd: usdOfNano(limitNano),
    spent_usd: usdOfNano(spentNano),
    reserved_usd: usdOfNano(reservedNano),
    requested_usd: usdOfNano(requestNano),
  };
}
