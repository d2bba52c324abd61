import type { Key, KeySecret } from "../../domain/keys/key.ts";
import { about } from "../audit/audit-fields.ts";
import { change, type Change } from "../operation/change.ts";
import { keySchema } from "../contract/keys.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { requireKey } from "./key-access.ts";
import { isLive, liveSecrets, viewKey } from "./key-view.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { notFound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { timeText } from "../values/api-form.ts";
import { wrongState } from "../operation/wrong-state.ts";

/** Ends one of two live secrets, such as the one still valid for the overlap of a rotation. */
export function endSecretOperation(services: AdminServices): Operation {
  return defineOperation({
    id: "endSecret",
    method: "DELETE",
    path: "/admin/v1/keys/{id}/secrets/{public_id}",
    resource: "Keys",
    summary: "End one secret of a key now",
    description:
      "The other one lives on; the only live one cannot be ended: rotate or revoke the key. To " +
      "repeat it changes nothing. `public_id` may also be `sk-slc_` and the public id.",
    ...permissions.manage,
    status: 200,
    answer: keySchema,
    run: ({ call, parameters }) =>
      change(services, call, async (changing) => {
        const { transaction, now } = changing;
        const key = await requireKey(transaction, parameters["id"] ?? "", call.principal);
        const publicId = (parameters["public_id"] ?? "").replace(/^sk-slc_/, "");
        const secret = await transaction.secrets.get(publicId);
        if (secret?.keyId !== key.id) throw notFound("secret of this key");
        if (key.revokedAt === undefined && isLive(secret, now)) {
          await requireAnother(changing, key);
          await endSecret(changing, { key, secret, verb: "end_secret" });
        }
        return viewKey(transaction, key, services);
      }),
  });
}

async function requireAnother({ transaction, now }: Change, key: Key): Promise<void> {
  const live = liveSecrets(await transaction.secrets.ofKey(key.id), now);
  if (live.length > 1) return;
  throw wrongState(
    "It is the only live secret of the key. Rotate the key to give it another one, or revoke it.",
  );
}

export interface SecretToEnd {
  readonly key: Key;
  readonly secret: KeySecret;
  /** The verb of the audit entry: `key.<verb>`. */
  readonly verb: string;
}

export async function endSecret(
  changing: Change,
  { key, secret, verb }: SecretToEnd,
): Promise<void> {
  const { transaction, now } = changing;
  await transaction.secrets.expire(secret.publicId, now);
  changing.touchesKeys();
  await changing.audit({
    ...about("key", verb, key),
    before: { public_id: secret.publicId, expires_at: timeText(secret.expiresAt) },
    after: { public_id: secret.publicId, expires_at: timeText(now) },
  });
}
