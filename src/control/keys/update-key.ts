import type { Key } from "../../domain/keys/key.ts";
import { isSameValue } from "../../domain/same-value.ts";
import { changeOf } from "../audit/audit-fields.ts";
import { change, type Change } from "../operation/change.ts";
import { checkSale } from "./check-sale.ts";
import { keyChangeSchema, keySchema } from "../contract/keys.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { disablingAfter } from "../accounts/disabling.ts";
import { requireKey, requireOwners, requireRevision } from "./key-access.ts";
import { checkKeySettings } from "./key-rules.ts";
import { applySettings } from "./key-settings.ts";
import { viewKey } from "./key-view.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import type { AdminServices } from "../services.ts";
import { wrongState } from "../operation/wrong-state.ts";

/** Changes what was decided about a key, from the revision that was read. */
export function updateKey(services: AdminServices): Operation {
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
  // A change of nothing is none: no revision, no entry.
  if (isSameValue(key, wanted)) return key;
  const stored = await changing.transaction.keys.update(wanted);
  await changing.audit(changeOf("key", "update", { before: key, after: stored }));
  changing.touchesKeys();
  return stored;
}
