import type { Key, KeySecret } from "../domain/key.ts";
import type { ControlTransaction } from "../storage/control-store.ts";
import { insertSecret } from "./issue-key.ts";
import { keyStatus, lastUseOf, liveSecrets } from "./key-view.ts";
import type { AdminServices } from "./services.ts";
import { wrongState } from "./wrong-state.ts";

export interface RotationWish {
  readonly overlapMs: number;
  /** Every other secret ends at once. */
  readonly isCompromised: boolean;
  readonly now: number;
}

export interface Rotation {
  readonly publicId: string;
  readonly text: string;
  /** Public ids of what ended with it. */
  readonly ended: readonly string[];
  /** Until when the secret of before works on. */
  readonly overlapUntil: number | undefined;
}

type RotateServices = Pick<AdminServices, "digest" | "random" | "lastUse">;

/** Gives a key a new secret; never more than two are live. Throws 409 for a key that has ended. */
export async function rotateKey(
  { transaction, key }: { readonly transaction: ControlTransaction; readonly key: Key },
  wish: RotationWish,
  services: RotateServices,
): Promise<Rotation> {
  const status = keyStatus(key, wish.now);
  if (status === "revoked" || status === "expired") {
    throw wrongState(`The key is ${status}: it cannot be rotated. Issue a new one.`);
  }
  const live = liveSecrets(await transaction.secrets.ofKey(key.id), wish.now);
  const plan = planRotation(live, wish, services);
  for (const secret of plan.ending) await transaction.secrets.expire(secret.publicId, wish.now);
  const { staying, overlapUntil } = plan;
  if (staying !== undefined && overlapUntil !== undefined && staying.expiresAt !== overlapUntil) {
    await transaction.secrets.expire(staying.publicId, overlapUntil);
  }
  const made = await insertSecret(transaction, { keyId: key.id, now: wish.now }, services);
  const ended = plan.ending.map(({ publicId }) => publicId);
  return { ...made, ended, overlapUntil };
}

interface RotationPlan {
  readonly ending: readonly KeySecret[];
  /** The one that works on, until `overlapUntil`. */
  readonly staying: KeySecret | undefined;
  readonly overlapUntil: number | undefined;
}

function planRotation(
  live: readonly KeySecret[],
  { overlapMs, isCompromised, now }: RotationWish,
  services: RotateServices,
): RotationPlan {
  const [newest, ...older] = live;
  const endAll = { ending: live, staying: undefined, overlapUntil: undefined };
  if (isCompromised || newest === undefined) return endAll;
  const [previous, ...rest] = older;
  if (previous !== undefined && lastUseOf(newest, services) === undefined) {
    // Nobody has taken the newest: its rotation's answer was lost. Whoever calls still uses the
    // one before, so that one stays, and asking again and again does not prolong its life.
    const ending = [newest, ...rest];
    return { ending, staying: previous, overlapUntil: previous.expiresAt };
  }
  if (overlapMs === 0) return endAll;
  const overlapUntil = Math.min(now + overlapMs, newest.expiresAt ?? Number.POSITIVE_INFINITY);
  return { ending: older, staying: newest, overlapUntil };
}
