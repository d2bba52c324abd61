import { disablingAfter } from "../operation/scope.ts";
import {
  issuedKeySchema,
  keyChangeSchema,
  keyQuerySchema,
  keySchema,
  changedKeySchema,
  newKeySchema,
} from "../contract/keys.ts";
import { endSecretOperation } from "./end-secret.ts";
import { insertKey } from "./issue-key.ts";
import { requireKey, requireOwners, showKeys, type KeyOperations } from "./key-view.ts";
import { changeOf } from "../audit/audit-fields.ts";
import { checkKeyCount, checkKeySettings, checkSale } from "./key-rules.ts";
import { applySettings, withExpiry } from "./key-settings.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { requireKnownNames } from "../operation/known-names.ts";
import { ResourceOperations } from "../operation/resource-operations.ts";
import { rotateKey } from "./rotate-key.ts";
import type { AdminServices } from "../services.ts";
import { wrongState } from "../operation/refusals.ts";

export function keyOperations(services: AdminServices): readonly Operation[] {
  const keys = new ResourceOperations(
    {
      kind: "key",
      reads: permissions.read,
      changes: permissions.manage,
      schema: keySchema,
      changedSchema: changedKeySchema,
      find: requireKey,
      show: (view) => showKeys(view, services),
    },
    services,
  );
  return [
    createKey(keys, services),
    listKeys(keys, services),
    keys.get({
      id: "getKey",
      summary: "Show a key",
      description:
        "`id` may also be the first characters of one of its API keys: `sk-slc_` and 8 more.",
    }),
    updateKey(keys, services),
    revokeKey(keys),
    rotateKey(keys, services),
    endSecretOperation(keys),
  ];
}

function createKey(keys: KeyOperations, services: AdminServices): Operation {
  return keys.create({
    id: "createKey",
    summary: "Issue a key",
    description: "The API key is shown only in this response.",
    body: newKeySchema,
    answer: issuedKeySchema,
    hasSecret: true,
    async run({ changing, call: { principal }, body: named, show }) {
      const { transaction, now } = changing;
      const body = withExpiry(named, now);
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
      return { key: await show(key), api_key: text };
    },
  });
}

function listKeys(keys: KeyOperations, { clock, platform }: AdminServices): Operation {
  return keys.list({
    id: "listKeys",
    summary: "List keys, newest first",
    query: keyQuerySchema,
    async find({ view, query, accountId, page }) {
      const { status } = query;
      const filter = {
        accountId,
        applicationId: query.application_id,
        environment: query.environment,
        plan: query.plan,
        provisionedPool: query.provisioned_pool,
        isActive: status && { value: status === "active", now: clock.now() },
      };
      const found = await view.keys.list(filter, page);
      if (found.items.length === 0) requireKnownNames(platform(), query);
      return found;
    },
  });
}

function updateKey(keys: KeyOperations, services: AdminServices): Operation {
  return keys.update({
    id: "updateKey",
    summary: "Change a key",
    description:
      "Absent fields keep their values. A plan with its own limits removes those of the key.",
    body: keyChangeSchema,
    async wanted({ changing, call: { principal }, entity: key, body: named }) {
      const { transaction, now } = changing;
      const body = withExpiry(named, now);
      if (key.revokedAt !== undefined) throw wrongState("The key has been revoked permanently.");
      const owners = await requireOwners(transaction, key.applicationId, principal);
      const platform = services.platform();
      const settings = applySettings(key, body, platform);
      const rules = { principal, ...owners, platform, now };
      checkKeySettings(settings, body, rules);
      await checkSale(transaction, { before: key, after: settings }, rules);
      const wish = { disabled: body.disabled, principal, now };
      return { ...key, ...settings, ...disablingAfter(key, wish) };
    },
    store: (transaction, wanted) => transaction.keys.update(wanted),
  });
}

function revokeKey(keys: KeyOperations): Operation {
  return keys.change({
    id: "revokeKey",
    method: "DELETE",
    summary: "Revoke a key permanently",
    description:
      "Running processes refuse it within a second, unless they are cut off. Repeating it changes " +
      "nothing and tells how many have applied it.",
    answer: changedKeySchema,
    async run({ changing, entity: before, show }) {
      changing.touchesKeys();
      if (before.revokedAt !== undefined) return show(before);
      const { transaction, now } = changing;
      const after = await transaction.keys.update({ ...before, revokedAt: now });
      await changing.audit(changeOf("key", "revoke", { before, after }));
      return show(after);
    },
  });
}
