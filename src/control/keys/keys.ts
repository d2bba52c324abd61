import type { z } from "zod";
import { change, type Change } from "../operation/change.ts";
import {
  issuedKeySchema,
  keyQuerySchema,
  keySchema,
  newKeySchema,
  rotatedKeySchema,
  rotationSchema,
} from "../contract/keys.ts";
import { listOf } from "../contract/values.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { endSecretOperation } from "./end-secret.ts";
import { insertKey } from "./issue-key.ts";
import { requireKey, requireOwners } from "./key-access.ts";
import { about, changeOf } from "../audit/audit-fields.ts";
import { checkSale } from "./check-sale.ts";
import { checkKeyCount, checkKeySettings } from "./key-rules.ts";
import { applySettings } from "./key-settings.ts";
import { viewKey, viewKeys } from "./key-view.ts";
import { emptyList, pageRequest } from "../operation/list-page.ts";
import type { Operation, OperationCall } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { rotateKey } from "./rotate-key.ts";
import { listScope } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { timeText } from "../values/api-form.ts";
import { updateKey } from "./update-key.ts";

/** Issue, look at, change, rotate and revoke keys, and end their secrets. */
export function keyOperations(services: AdminServices): readonly Operation[] {
  return [
    createKey(services),
    listKeys(services),
    getKey(services),
    updateKey(services),
    revokeKey(services),
    rotate(services),
    endSecretOperation(services),
  ];
}

function createKey(services: AdminServices): Operation {
  return defineOperation({
    id: "createKey",
    method: "POST",
    path: "/admin/v1/keys",
    resource: "Keys",
    summary: "Issue a key",
    description: "The API key is shown in this answer and never again.",
    ...permissions.manage,
    status: 201,
    body: newKeySchema,
    answer: issuedKeySchema,
    hasSecret: true,
    run: ({ call, body }) =>
      change(services, call, async (changing) => {
        const { transaction, now } = changing;
        const { principal } = call;
        const owners = await requireOwners(transaction, body.application_id, principal);
        const platform = services.platform();
        const rules = { principal, ...owners, platform, now };
        const settings = applySettings(undefined, body, platform);
        checkKeySettings(settings, body, rules);
        await checkKeyCount(transaction, rules);
        await checkSale(transaction, { after: settings }, rules);
        const wanted = { application: owners.application, settings, now };
        const { key, text } = await insertKey(transaction, wanted, services);
        await changing.audit(changeOf("key", "create", { after: key }));
        changing.touchesKeys();
        return { key: await viewKey(transaction, key, services), api_key: text };
      }),
  });
}

function listKeys({ store, ...services }: AdminServices): Operation {
  return defineOperation({
    id: "listKeys",
    method: "GET",
    path: "/admin/v1/keys",
    resource: "Keys",
    summary: "List keys, newest first",
    ...permissions.read,
    status: 200,
    query: keyQuerySchema,
    answer: listOf(keySchema),
    run: ({ call, query }) =>
      store.read(async (view) => {
        const scope = listScope(call.principal, query.account_id);
        if (scope.isEmpty) return emptyList;
        const { status } = query;
        const filter = {
          accountId: scope.accountId,
          applicationId: query.application_id,
          environment: query.environment,
          plan: query.plan,
          provisionedPool: query.provisioned_pool,
          isActive: status && { value: status === "active", now: services.clock.now() },
        };
        const page = await view.keys.list(filter, pageRequest(query));
        const data = await viewKeys(view, page.items, services);
        return { data, next_cursor: page.next ?? null };
      }),
  });
}

function getKey({ store, ...services }: AdminServices): Operation {
  return defineOperation({
    id: "getKey",
    method: "GET",
    path: "/admin/v1/keys/{id}",
    resource: "Keys",
    summary: "Show a key",
    description:
      "`id` may also be the beginning of one of its API keys: `sk-slc_` and 8 characters.",
    ...permissions.read,
    status: 200,
    answer: keySchema,
    run: ({ call, parameters }) =>
      store.read(async (view) => {
        const key = await requireKey(view, parameters["id"] ?? "", call.principal);
        return viewKey(view, key, services);
      }),
  });
}

function revokeKey(services: AdminServices): Operation {
  return defineOperation({
    id: "revokeKey",
    method: "DELETE",
    path: "/admin/v1/keys/{id}",
    resource: "Keys",
    summary: "Revoke a key for good",
    description: "Running gateways refuse it within a second. To repeat it changes nothing.",
    ...permissions.manage,
    status: 200,
    answer: keySchema,
    run: ({ call, parameters }) =>
      change(services, call, async (changing) => {
        const { transaction, now } = changing;
        let key = await requireKey(transaction, parameters["id"] ?? "", call.principal);
        if (key.revokedAt === undefined) {
          const before = key;
          key = await transaction.keys.update({ ...before, revokedAt: now });
          await changing.audit(changeOf("key", "revoke", { before, after: key }));
          changing.touchesKeys();
        }
        return viewKey(transaction, key, services);
      }),
  });
}

function rotate(services: AdminServices): Operation {
  return defineOperation({
    id: "rotateKey",
    method: "POST",
    path: "/admin/v1/keys/{id}/rotate",
    resource: "Keys",
    summary: "Give a key a new secret",
    description:
      "The new API key works at once; the one in use works on for the overlap. At most two are " +
      "live: of two, a newest one that was never used is replaced and the other keeps its end, or " +
      "ends sooner when `overlap_seconds` says so; otherwise the older one ends now. Id, limits " +
      "and usage of the key stay.",
    ...permissions.manage,
    status: 201,
    body: rotationSchema,
    answer: rotatedKeySchema,
    hasSecret: true,
    run: ({ call, parameters, body }) =>
      change(services, call, (changing) =>
        rotateIn(changing, { call, id: parameters["id"] ?? "", body }, services),
      ),
  });
}

interface RotationRequest {
  readonly call: OperationCall;
  readonly id: string;
  readonly body: z.output<typeof rotationSchema>;
}

async function rotateIn(changing: Change, request: RotationRequest, services: AdminServices) {
  const { transaction, now } = changing;
  const { call, id, body } = request;
  const key = await requireKey(transaction, id, call.principal);
  const overlapMs = body.overlap_seconds === undefined ? undefined : body.overlap_seconds * 1000;
  const isCompromised = body.compromised ?? false;
  const wish = { overlapMs, isCompromised, now };
  const made = await rotateKey({ transaction, key }, wish, services);
  await changing.audit({
    ...about("key", "rotate", key),
    after: {
      public_id: made.publicId,
      ended: made.ended,
      overlap_until: timeText(made.overlapUntil),
      compromised: isCompromised,
    },
  });
  changing.touchesKeys();
  return {
    key: await viewKey(transaction, key, services),
    api_key: made.text,
    ended: [...made.ended],
    overlap_until: timeText(made.overlapUntil),
  };
}
