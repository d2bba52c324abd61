import type { z } from "zod";
import type { Key, KeySecret } from "../../domain/keys/key.ts";
import { about } from "../audit/audit-fields.ts";
import { rotatedKeySchema, rotationSchema } from "../contract/keys.ts";
import type { Change } from "../operation/change.ts";
import type { Operation } from "../operation/operation.ts";
import { wrongState } from "../operation/refusals.ts";
import type { AdminServices } from "../services.ts";
import { timeText } from "../values/api-form.ts";
import { insertSecret } from "./issue-key.ts";
import { keyStatus, lastUseOf, liveSecrets, type KeyOperations } from "./key-view.ts";

/** Gives a key a new secret; never more than two are live. */
export function rotateKey(keys: KeyOperations, services: RotateServices): Operation {
  return keys.change({
    id: "rotateKey",
    method: "POST",
    below: "/rotate",
    summary: "Rotate a key",
    description:
      "The new secret works at once here, and within a second at other machines; the current one " +
      "keeps working for the overlap. At most two are live. If there are two and the newest was " +
      "never used, it is replaced, and the other keeps its end or gets an earlier one from " +
      "`overlap_seconds`. Otherwise the older one ends now. Id, limits and usage do not change.",
    status: 201,
    body: rotationSchema,
    answer: rotatedKeySchema,
    hasSecret: true,
    async run({ changing, entity: key, body, show }) {
      const rotated = await rotate(changing, { key, body }, services);
      const { text, publicId, ended, overlapUntil } = rotated;
      const told = { ended: [...ended], overlap_until: timeText(overlapUntil) };
      const after = { public_id: publicId, ...told, compromised: body.compromised ?? false };
      await changing.audit({ ...about("key", "rotate", key), after });
      changing.touchesKeys();
      return { key: await show(key), api_key: text, ...told };
    },
  });
}

interface RotationWish {
  readonly key: Key;
  readonly body: z.output<typeof rotationSchema>;
}

const defaultOverlapMs = 86_400_000;

type RotateServices = Pick<AdminServices, "peppers" | "random" | "lastUse">;

/** Rotates the secrets of a key. Throws 409 for an ended key. */
async function rotate(
  { transaction, now }: Change,
  { key, body }: RotationWish,
  services: RotateServices,
) {
  const status = keyStatus(key, now);
  if (status === "revoked" || status === "expired") {
    throw wrongState(`The key is ${status} and cannot be rotated. Issue a new one.`);
  }
  const live = liveSecrets(await transaction.secrets.ofKey(key.id), now);
  const { ending, staying } = planRotation(live, { body, now }, services);
  for (const secret of ending) await transaction.secrets.expire(secret.publicId, now);
  if (staying !== undefined && staying.secret.expiresAt !== staying.until) {
    await transaction.secrets.expire(staying.secret.publicId, staying.until);
  }
  const made = await insertSecret(transaction, { keyId: key.id, now }, services);
  const ended = ending.map(({ publicId }) => publicId);
  return { ...made, ended, overlapUntil: staying && Math.min(staying.until, endOf(key)) };
}

interface RotationPlan {
  readonly ending: readonly KeySecret[];
  readonly staying: { readonly secret: KeySecret; readonly until: number } | undefined;
}

function planRotation(
  live: readonly KeySecret[],
  { body, now }: Pick<RotationWish, "body"> & { readonly now: number },
  services: RotateServices,
): RotationPlan {
  const { overlap_seconds: overlapSeconds, compromised: isCompromised = false } = body;
  const overlapMs = overlapSeconds === undefined ? undefined : overlapSeconds * 1000;
  const [newest, previous] = live;
  if (isCompromised || newest === undefined || overlapMs === 0) {
    return { ending: live, staying: undefined };
  }
  // If the newest secret was never used, the answer of its rotation was lost: callers still use the
  // previous one, which stays valid.
  const isLost = previous !== undefined && lastUseOf(newest, services) === undefined;
  const secret = isLost ? previous : newest;
  const ending = live.filter((other) => other !== secret);
  // Repeated rotations do not extend its validity.
  const until = Math.min(now + (overlapMs ?? defaultOverlapMs), endOf(secret));
  const keepsItsEnd = isLost && overlapMs === undefined && secret.expiresAt !== undefined;
  return { ending, staying: { secret, until: keepsItsEnd ? secret.expiresAt : until } };
}

function endOf({ expiresAt }: { readonly expiresAt: number | undefined }): number {
  return expiresAt ?? Number.POSITIVE_INFINITY;
}
