import { plainKey } from "../support/plain-key.ts";
import type { Account, Application, ManagementToken, User } from "../../src/store/entities.ts";
import type { AuditEntry } from "../../src/store/audit.ts";
import type { Key, KeySecret } from "../../src/domain/keys/key.ts";
import type { ControlStore } from "../../src/store/repositories/control-store.ts";

/** Entities as tests need them: complete, and different only where the test says so. */

export function accountOf(id: string, values: Partial<Account> = {}): Account {
  return {
    id,
    name: `Account ${id}`,
    note: "",
    plans: ["pilot", "standard"],
    maxKeys: 100,
    limits: undefined,
    timeZone: "UTC",
    createdAt: 1_000,
    disabledAt: undefined,
    revision: 1,
    ...values,
  };
}

export function applicationOf(id: string, values: Partial<Application> = {}): Application {
  return {
    id,
    accountId: "acct_a",
    environment: "production",
    name: `Application ${id}`,
    note: "",
    createdAt: 1_000,
    disabledAt: undefined,
    disabledBy: undefined,
    revision: 1,
    ...values,
  };
}

export function keyOf(id: string, application: Application, values: Partial<Key> = {}): Key {
  return plainKey({
    id,
    accountId: application.accountId,
    applicationId: application.id,
    application: application.name,
    environment: application.environment,
    createdAt: 1_000,
    ...values,
  });
}

export function secretOf(
  publicId: string,
  keyId: string,
  values: Partial<KeySecret> = {},
): KeySecret {
  const digest = new Uint8Array(32).fill(publicId.charCodeAt(0));
  return {
    publicId,
    keyId,
    digest,
    createdAt: 1_000,
    expiresAt: undefined,
    lastUsedAt: undefined,
    ...values,
  };
}

export function userOf(id: string, values: Partial<User> = {}): User {
  return {
    id,
    email: `${id}@example.com`,
    name: `User ${id}`,
    role: "operator",
    accountId: undefined,
    passwordHash: undefined,
    identity: undefined,
    createdAt: 1_000,
    disabledAt: undefined,
    lastSignInAt: undefined,
    revision: 1,
    ...values,
  };
}

export function tokenOf(
  id: string,
  userId: string,
  values: Partial<ManagementToken> = {},
): ManagementToken {
  return {
    id,
    userId,
    name: `Token ${id}`,
    publicId: `public ${id}`,
    digest: new Uint8Array(32).fill(7),
    scopes: ["read", "write"],
    createdAt: 1_000,
    expiresAt: 9_000,
    lastUsedAt: undefined,
    revokedAt: undefined,
    ...values,
  };
}

export function auditEntryOf(at: number, values: Partial<AuditEntry> = {}): AuditEntry {
  return {
    at,
    actor: { kind: "session", id: "user_a", name: "ada@example.com" },
    address: "192.0.2.7",
    requestId: "req_1",
    action: "key.update",
    subject: { type: "key", id: "key_a" },
    accountId: "acct_a",
    before: { note: "" },
    after: { note: "changed" },
    ...values,
  };
}

/** An account with one application and one key that has one secret. */
export async function insertKey(
  store: ControlStore,
  names: { readonly account: string; readonly application: string; readonly key: string },
): Promise<{ readonly application: Application; readonly key: Key }> {
  const application = applicationOf(names.application, { accountId: names.account });
  const key = keyOf(names.key, application);
  await store.change(async (transaction) => {
    if ((await transaction.accounts.get(names.account)) === undefined) {
      await transaction.accounts.insert(accountOf(names.account));
    }
    if ((await transaction.applications.get(application.id)) === undefined) {
      await transaction.applications.insert(application);
    }
    await transaction.keys.insert(key);
    await transaction.secrets.insert(secretOf(`of_${names.key}`, key.id));
  });
  return { application, key };
}
