import type { Account, Application } from "../../domain/accounts/account.ts";
import type { AuditFields } from "../../domain/audit/audit.ts";
import type { Key } from "../../domain/keys/key.ts";
import type { ManagementToken, User } from "../../domain/accounts/user.ts";
import { viewLimits } from "../values/limits-view.ts";
import { timeText } from "../values/time-text.ts";

/**
 * What the audit keeps of each entity: the fields named here and no others, so that a secret, a
 * digest or a password hash cannot get there by being added to an entity.
 */

export function accountFields(account: Account): AuditFields {
  const { name, note, plans, maxKeys, disabledAt } = account;
  const limits = viewLimits(account.limits);
  return { name, note, plans, max_keys: maxKeys, limits, disabled_at: timeText(disabledAt) };
}

export function applicationFields(application: Application): AuditFields {
  const { environment, name, note, disabledAt, disabledBy } = application;
  const disabled = { disabled_at: timeText(disabledAt), disabled_by: disabledBy ?? null };
  return { environment, name, note, ...disabled };
}

export function keyFields(key: Key): AuditFields {
  return {
    application_id: key.applicationId,
    application: key.application,
    environment: key.environment,
    plan: key.plan,
    limits: viewLimits(key.limits),
    provisioned_units: key.provisionedUnits,
    provisioned_pool: key.provisionedPool ?? null,
    allowed_models: key.allowedModels ?? null,
    allowed_networks: key.allowedNetworks ?? null,
    note: key.note,
    expires_at: timeText(key.expiresAt),
    disabled_at: timeText(key.disabledAt),
    disabled_by: key.disabledBy ?? null,
    revoked_at: timeText(key.revokedAt),
  };
}

export function userFields(user: User): AuditFields {
  return {
    email: user.email,
    name: user.name,
    role: user.role,
    account_id: user.accountId ?? null,
    has_password: user.passwordHash !== undefined,
    has_single_sign_on: user.identity !== undefined,
    disabled_at: timeText(user.disabledAt),
  };
}

export function tokenFields(token: ManagementToken): AuditFields {
  return {
    user_id: token.userId,
    name: token.name,
    public_id: token.publicId,
    made_with: token.parentId ?? null,
    scopes: token.scopes,
    expires_at: timeText(token.expiresAt),
    revoked_at: timeText(token.revokedAt),
  };
}
