import type { Key, KeySecret } from "../../domain/keys/key.ts";
import type { ControlTransaction } from "../../store/control-store.ts";
import { insertSecret } from "./issue-key.ts";
import { keyStatus, lastUseOf, liveSecrets } from "./key-view.ts";
import type { AdminServices } from "../services.ts";
import { wrongState } from "../operation/wrong-state.ts";

export interface RotationWish {
  /** Undefined: a day, or what a secret that is to end already has left. */
  readonly overlapMs: number | undefined;
  /** Every other secret ends at once. */
  readonly isCompromised: boolean;
  readonly now: number;
}

export interface Rotation {
  readonly publicId: string;
  readonly text: string;
  /** Public ids of what ended with it. */
  readonly ended: readonly string[];
  /** Until when the secret of before works on: no longer than the key. */
  readonly overlapUntil: number | undefined;
}

const defaultOverlapMs = 86_400_000;

type RotateServices = Pick<AdminServices, "peppers" | "random" | "lastUse">;

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
  const { staying } = plan;
  if (staying !== undefined && staying.secret.expiresAt !== staying.until) {
    await transaction.secrets.expire(staying.secret.publicId, staying.until);
  }
  const made = await insertSecret(transaction, { keyId: key.id, now: wish.now }, services);
  const ended = plan.ending.map(({ publicId }) => publicId);
  const overlapUntil = staying && Math.min(staying.until, endOf(key));
  return { ...made, ended, overlapUntil };
}

interface RotationPlan {
  readonly ending: readonly KeySecret[];
  /** The one that works on. */
  readonly staying: { readonly secret: KeySecret; readonly until: number } | undefined;
}

function planRotation(
  live: readonly KeySecret[],
  { overlapMs, isCompromised, now }: RotationWish,
  services: RotateServices,
): RotationPlan {
  const [newest, previous] = live;
  if (isCompromised || newest === undefined || overlapMs === 0) {
    return { ending: live, staying: undefined };
  }
  // Nobody has taken a newest that was never used: its rotation's answer was lost. Whoever calls
  // still uses the one before, so that one stays.
  const isLost = previous !== undefined && lastUseOf(newest, services) === undefined;
  const secret = isLost ? previous : newest;
  const ending = live.filter((other) => other !== secret);
  // Asking again and again does not prolong its life.
  const until = Math.min(now + (overlapMs ?? defaultOverlapMs), endOf(secret));
  const keepsItsEnd = isLost && overlapMs === undefined && secret.expiresAt !== undefined;
  return { ending, staying: { secret, until: keepsItsEnd ? secret.expiresAt : until } };
}

function endOf({ expiresAt }: { readonly expiresAt: number | undefined }): number {
  return expiresAt ?? Number.POSITIVE_INFINITY;
}
