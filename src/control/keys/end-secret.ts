import type { Key, KeySecret } from "../../domain/keys/key.ts";
import { about } from "../audit/audit-fields.ts";
import type { Change } from "../operation/change.ts";
import { changedKeySchema } from "../contract/keys.ts";
import { isLive, liveSecrets, type KeyOperations } from "./key-view.ts";
import type { Operation } from "../operation/operation.ts";
import { notFound } from "../operation/scope.ts";
import { timeText } from "../values/api-form.ts";
import { wrongState } from "../operation/refusals.ts";

/** Ends one of two live secrets, for example the older one during a rotation. */
export function endSecretOperation(keys: KeyOperations): Operation {
  return keys.change({
    id: "endSecret",
    method: "DELETE",
    below: "/secrets/{public_id}",
    summary: "End one secret of a key",
    description:
      "The other secret keeps working. The only live secret cannot be ended: rotate or " +
      "revoke the key. Repeating it changes nothing. `public_id` may be preceded by " +
      "`sk-slc_`.",
    answer: changedKeySchema,
    async run({ changing, entity: key, parameters, show }) {
      const publicId = (parameters["public_id"] ?? "").replace(/^sk-slc_/, "");
      const secret = await changing.transaction.secrets.get(publicId);
      if (secret?.keyId !== key.id) throw notFound("secret of this key");
      changing.touchesKeys();
      if (key.revokedAt === undefined && isLive(secret, changing.now)) {
        await requireAnother(changing, key);
        await endSecret(changing, { key, secret, verb: "end_secret" });
      }
      return show(key);
    },
  });
}

async function requireAnother({ transaction, now }: Change, key: Key): Promise<void> {
  const live = liveSecrets(await transaction.secrets.ofKey(key.id), now);
  if (live.length > 1) return;
  throw wrongState("This is the key's only live secret. Rotate or revoke the key instead.");
}

/** `verb` is that of the audit entry: `key.<verb>`. */
export async function endSecret(
  changing: Change,
  { key, secret, verb }: { key: Key; secret: KeySecret; verb: "end_secret" | "leak" },
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
