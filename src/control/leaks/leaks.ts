import { maskApiKey, readPublicId } from "../../domain/keys/api-key.ts";
import { change, type Change } from "../operation/change.ts";
import { leakFindingsSchema, leakReportSchema, type LeakFinding } from "../contract/keys.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { endSecret } from "../keys/end-secret.ts";
import { hintOf, isLive, keyStatus } from "../keys/key-view.ts";
import { findSecret } from "./find-secret.ts";
import { leakReportOperation } from "./leak-reports.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import type { AdminServices } from "../services.ts";

/** Operations for leaked keys. */
export function leakOperations(services: AdminServices): readonly Operation[] {
  return [
    leakReportOperation(services),
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

interface LeakedText {
  readonly text: string;
  readonly isEnding: boolean;
}

async function judge(
  changing: Change,
  { text, isEnding }: LeakedText,
  { peppers }: AdminServices,
): Promise<LeakFinding> {
  const publicId = readPublicId(text);
  const nobody = { key_id: null, application: null };
  if (publicId === undefined) {
    return { hint: maskApiKey(text), ...nobody, outcome: "not_a_key" };
  }
  const hint = hintOf(publicId);
  // Only a sender of the complete secret learns its owner.
  const found = await findSecret(changing.transaction, text, peppers);
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
