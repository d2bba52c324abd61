import type { Key, KeySecret } from "../../domain/keys/key.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { keySchema, secretSchema, type KeyStatus, type KeyView } from "../contract/keys.ts";
import type { ResourceOperations } from "../operation/resource-operations.ts";
import type { AdminServices } from "../services.ts";
import { apiForm, timeText, viewAs } from "../values/api-form.ts";
import { readOnce } from "../values/read-once.ts";
import type { Account, Application } from "../../store/entities.ts";
import type { Principal } from "../../domain/principal.ts";
import { notFound, requireVisible } from "../operation/scope.ts";

export type KeyOperations = ResourceOperations<"key", KeyView>;

type ViewServices = Pick<AdminServices, "platform" | "lastUse" | "clock">;

/**
 * Shows the keys of one answer, with only public ids and times of their secrets. Looks up each
 * owner once.
 */
export function showKeys(
  view: ControlView,
  services: ViewServices,
): (key: Key) => Promise<KeyView> {
  const owners = ownersOf(view);
  return async (key) => {
    const now = services.clock.now();
    const own = keyStatus(key, now);
    const { account, state } = await owners(key);
    const secrets = newestFirst(await view.secrets.ofKey(key.id));
    const hasSecret = secrets.some((secret) => isLive(secret, now));
    const status = own === "active" ? (state ?? (hasSecret ? own : "no_secret")) : own;
    const isOver = own === "revoked" || own === "expired";
    return viewAs(keySchema, key, {
      account,
      effective_limits: apiForm(key.limits ?? services.platform().plans.get(key.plan)?.limits),
      status,
      secrets: secrets.map((secret) =>
        viewAs(secretSchema, secret, {
          hint: hintOf(secret.publicId),
          last_used_at: timeText(lastUseOf(secret, services)),
          status: isOver || !isLive(secret, now) ? ("ended" as const) : ("live" as const),
        }),
      ),
    });
  };
}

interface Owners {
  readonly account: string;
  /** Undefined while neither is disabled. */
  readonly state: OwnerState | undefined;
}

/** The account's name, and whether it or the application is disabled; looks each up once. */
function ownersOf({ applications, accounts }: ControlView): (key: Key) => Promise<Owners> {
  const applicationOf = readOnce((id) => applications.get(id));
  const accountOf = readOnce((id) => accounts.get(id));
  return async ({ applicationId, accountId }) => {
    const application = await applicationOf(applicationId);
    const account = await accountOf(accountId);
    const name = account?.name ?? "";
    if (application?.disabledAt !== undefined) {
      return { account: name, state: "application_disabled" };
    }
    const state = account?.disabledAt === undefined ? undefined : "account_disabled";
    return { account: name, state };
  };
}

type OwnerState = Extract<KeyStatus, "application_disabled" | "account_disabled">;

/** The state of the key itself, without its account, application and secrets. */
export function keyStatus(key: Key, now: number): OwnStatus {
  if (key.revokedAt !== undefined) return "revoked";
  if (key.expiresAt !== undefined && key.expiresAt <= now) return "expired";
  return key.disabledAt === undefined ? "active" : "disabled";
}

type OwnStatus = Extract<KeyStatus, "active" | "disabled" | "expired" | "revoked">;

export function isLive(secret: KeySecret, now: number): boolean {
  return secret.expiresAt === undefined || secret.expiresAt > now;
}

/**
 * The live secrets, newest first. The newest one is recognised by having no planned end, which
 * works even if both were made in the same millisecond or the clock was set back.
 */
export function liveSecrets(secrets: readonly KeySecret[], now: number): readonly KeySecret[] {
  return secrets
    .filter((secret) => isLive(secret, now))
    .toSorted((one, other) => endOf(other) - endOf(one));
}

function newestFirst(secrets: readonly KeySecret[]): readonly KeySecret[] {
  return secrets.toSorted(
    (one, other) => other.createdAt - one.createdAt || endOf(other) - endOf(one),
  );
}

function endOf({ expiresAt }: KeySecret): number {
  return expiresAt ?? Number.MAX_SAFE_INTEGER;
}

/** The latest use of a secret in this process or the store; undefined: never. */
export function lastUseOf(
  secret: KeySecret,
  services: Pick<AdminServices, "lastUse">,
): number | undefined {
  const recent = services.lastUse(secret.publicId);
  if (recent === undefined || secret.lastUsedAt === undefined) return recent ?? secret.lastUsedAt;
  return Math.max(recent, secret.lastUsedAt);
}

export function hintOf(publicId: string): string {
  return `sk-slc_${publicId}`;
}

/** A key by its id, or by the beginning of one of its API keys, if the principal may see it. */
export async function requireKey(
  view: ControlView,
  named: string,
  principal: Principal,
): Promise<Key> {
  const [, publicId] = /^sk-slc_([0-9A-Za-z]{8})$/.exec(named) ?? [];
  const id = publicId === undefined ? named : (await view.secrets.get(publicId))?.keyId;
  const key = id === undefined ? undefined : await view.keys.get(id);
  return requireVisible(key, principal, "key");
}

/** The application, if the principal may see it, and its account. */
export async function requireOwners(
  view: ControlView,
  applicationId: string,
  principal: Principal,
): Promise<{ readonly application: Application; readonly account: Account }> {
  const application = requireVisible(
    await view.applications.get(applicationId),
    principal,
    "application",
  );
  const account = await view.accounts.get(application.accountId);
  if (account === undefined) throw notFound("account");
  return { application, account };
}
