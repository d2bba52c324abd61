import { generateApiKey } from "../../domain/keys/api-key.ts";
import type { Application } from "../../store/entities.ts";
import { randomBase62 } from "../../domain/keys/base62.ts";
import type { Key } from "../../domain/keys/key.ts";
import type { ControlTransaction } from "../../store/repositories/control-store.ts";
import type { AdminServices } from "../services.ts";

export type KeySettings = Pick<
  Key,
  | "plan"
  | "limits"
  | "provisionedUnits"
  | "provisionedPool"
  | "allowedModels"
  | "allowedNetworks"
  | "name"
  | "note"
  | "expiresAt"
>;

/** At least the plan. */
export type NewSettings = Pick<KeySettings, "plan"> & Partial<KeySettings>;

export interface IssuedKey {
  readonly key: Key;
  /** The API key itself: shown once, never stored. */
  readonly text: string;
}

/**
 * A key with its first secret, of which only a digest is stored. It takes over the limit scope of a
 * recently revoked key of its account; otherwise revoking and issuing keys would reset the limits.
 */
export async function insertKey(
  transaction: ControlTransaction,
  { application, settings, now }: { application: Application; settings: NewSettings; now: number },
  services: Pick<AdminServices, "peppers" | "random">,
): Promise<IssuedKey> {
  const id = `key_${randomBase62(16, services.random)}`;
  const left = await transaction.keys.freeLimitScope(application, now);
  const key: Key = {
    id,
    accountId: application.accountId,
    applicationId: application.id,
    application: application.name,
    environment: application.environment,
    plan: settings.plan,
    limitScope: left ?? id,
    limits: settings.limits,
    provisionedUnits: settings.provisionedUnits ?? 0,
    provisionedPool: settings.provisionedPool,
    allowedModels: settings.allowedModels,
    allowedNetworks: settings.allowedNetworks,
    name: settings.name ?? "",
    note: settings.note ?? "",
    createdAt: now,
    expiresAt: settings.expiresAt,
    disabledAt: undefined,
    disabledBy: undefined,
    revokedAt: undefined,
    revision: 1,
  };
  await transaction.keys.insert(key);
  const { text } = await insertSecret(transaction, { keyId: key.id, now }, services);
  return { key, text };
}

export async function insertSecret(
  transaction: ControlTransaction,
  { keyId, now }: { keyId: string; now: number },
  { peppers, random }: Pick<AdminServices, "peppers" | "random">,
): Promise<{ readonly publicId: string; readonly text: string }> {
  const { publicId, text } = generateApiKey(random);
  await transaction.secrets.insert({
    publicId,
    keyId,
    ...peppers.digest(text),
    createdAt: now,
    expiresAt: undefined,
    lastUsedAt: undefined,
  });
  return { publicId, text };
}
