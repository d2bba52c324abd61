import type { Key } from "../../src/domain/keys/key.ts";

/** A key of the plan `standard` without effective limits; tests set what they are about. */
export function plainKey(values: Partial<Key> = {}): Key {
  return {
    id: "key_a",
    accountId: "acct_a",
    applicationId: "app_a",
    application: "search",
    environment: "test",
    plan: "standard",
    limitScope: values.id ?? "key_a",
    limits: undefined,
    provisionedUnits: 0,
    allowedModels: undefined,
    allowedNetworks: undefined,
    name: "",
    note: "",
    createdAt: 0,
    expiresAt: undefined,
    disabledAt: undefined,
    disabledBy: undefined,
    revokedAt: undefined,
    revision: 1,
    ...values,
  };
}
