import { maskApiKey, readPublicId } from "../../domain/keys/api-key.ts";
import { change, type Change } from "../operation/change.ts";
import { leakFindingsSchema, leakReportSchema, type LeakFinding } from "../contract/keys.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import type { Key, KeySecret } from "../../domain/keys/key.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { endSecret } from "./end-secret.ts";
import { hintOf, isLive, keyStatus } from "./key-view.ts";
import type { AdminServices } from "../services.ts";

export function leakOperations(services: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "reportLeaks",
      method: "POST",
      path: "/admin/v1/leaks",
      resource: "Keys",
      summary: "Find leaked API keys and end their secrets",
      description:
        "Ends the secret of every text that is a live API key. The key itself and its other " +
        "secret, if any, stay. Rotate the key to get a new secret.",
      ...permissions.operate,
      body: leakReportSchema,
      answer: leakFindingsSchema,
      run: ({ call, body }) =>
        change(services, call, async (changing) => {
          const data: LeakFinding[] = [];
          const isEnding = body.disable ?? true;
          for (const text of body.api_keys) {
            data.push(await judge(changing, { text: text.trim(), isEnding }, services));
          }
          return { data };
        }),
    }),
  ];
}

async function judge(
  changing: Change,
  { text, isEnding }: { text: string; isEnding: boolean },
  { peppers }: AdminServices,
): Promise<LeakFinding> {
  const publicId = readPublicId(text);
  const nobody = { key_id: null, application: null };
  if (publicId === undefined) {
    return { hint: maskApiKey(text), ...nobody, outcome: "not_a_key" };
  }
  const hint = hintOf(publicId);
  // Only a sender of the complete secret learns its owner.
  const found = await findSecret(changing.transaction, { publicId, text }, peppers);
  if (found === undefined) return { hint, ...nobody, outcome: "unknown" };
  const { secret, key } = found;
  const finding = { hint, key_id: key.id, application: key.application };
  const status = keyStatus(key, changing.now);
  const isOver = status === "revoked" || status === "expired" || !isLive(secret, changing.now);
  if (isOver) return { ...finding, outcome: "ended" };
  if (!isEnding) return { ...finding, outcome: "live" };
  await endSecret(changing, { key, secret, verb: "leak" });
  return { ...finding, outcome: "secret_ended" };
}

/** The secret of a complete API key, with its key; undefined for any other text. */
async function findSecret(
  { secrets, keys }: ControlView,
  { publicId, text }: { readonly publicId: string; readonly text: string },
  peppers: Peppers,
): Promise<{ readonly secret: KeySecret; readonly key: Key } | undefined> {
  const secret = await secrets.get(publicId);
  const isRight = peppers.match(text, secret?.digest) !== undefined;
  const key = isRight && secret !== undefined ? await keys.get(secret.keyId) : undefined;
  return secret && key && { secret, key };
}
