import type { Key } from "../../domain/keys/key.ts";
import { isSameValue } from "../../domain/same-value.ts";
import { disablingAfter } from "../accounts/disabling.ts";
import { change, type Change } from "../operation/change.ts";
import {
  issuedKeySchema,
  keyChangeSchema,
  keyQuerySchema,
  keySchema,
  newKeySchema,
} from "../contract/keys.ts";
import { listOf } from "../contract/values.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { endSecretOperation } from "./end-secret.ts";
import { insertKey } from "./issue-key.ts";
import { requireKey, requireOwners, requireRevision } from "./key-access.ts";
import { changeOf } from "../audit/audit-fields.ts";
import { checkSale } from "./check-sale.ts";
import { checkKeyCount, checkKeySettings } from "./key-rules.ts";
import { applySettings } from "./key-settings.ts";
import { viewKey, viewKeys } from "./key-view.ts";
import { emptyList, pageRequest } from "../operation/list-page.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { rotateKey } from "./rotate-key.ts";
import { listScope } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { wrongState } from "../operation/wrong-state.ts";

/** Issue, read, change, rotate and revoke keys, and end their secrets. */
export function keyOperations(services: AdminServices): readonly Operation[] {
  return [
    createKey(services),
    listKeys(services),
    getKey(services),
    updateKey(services),
    revokeKey(services),
    rotateKey(services),
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

/** Changes the settings of a key, from the revision that was read. */
function updateKey(services: AdminServices): Operation {
  return defineOperation({
    id: "updateKey",
    method: "PATCH",
    path: "/admin/v1/keys/{id}",
    resource: "Keys",
    summary: "Change a key",
    description:
      "Fields that are absent stay. A change to a plan with limits of its own drops the key's.",
    ...permissions.manage,
    status: 200,
    body: keyChangeSchema,
    answer: keySchema,
    run: ({ call, parameters, body }) =>
      change(services, call, async (changing) => {
        const { transaction, now } = changing;
        const { principal } = call;
        const key = await requireKey(transaction, parameters["id"] ?? "", principal);
        requireRevision(key, body.revision);
        if (key.revokedAt !== undefined) throw wrongState("The key is revoked, for good.");
        const owners = await requireOwners(transaction, key.applicationId, principal);
        const platform = services.platform();
        const settings = applySettings(key, body, platform);
        const rules = { principal, ...owners, platform, now };
        checkKeySettings(settings, body, rules);
        await checkSale(transaction, { before: key, after: settings }, rules);
        const wish = { disabled: body.disabled, principal, now };
        const wanted = { ...key, ...settings, ...disablingAfter(key, wish) };
        return viewKey(transaction, await storeKey(changing, key, wanted), services);
      }),
  });
}

async function storeKey(changing: Change, key: Key, wanted: Key): Promise<Key> {
  // Without a difference there is no new revision and no audit entry.
  if (isSameValue(key, wanted)) return key;
  const stored = await changing.transaction.keys.update(wanted);
  await changing.audit(changeOf("key", "update", { before: key, after: stored }));
  changing.touchesKeys();
  return stored;
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
