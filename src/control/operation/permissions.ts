import type { Role, Scope } from "../../domain/accounts/user.ts";

export interface Permission {
  readonly roles: readonly Role[];
  readonly scope: Scope;
}

/** The combinations of roles that operations allow. `scope.ts` limits them to accounts. */
export const permissions = {
  /** All roles, each within its account scope. */
  read: { roles: ["operator", "account_holder", "auditor"], scope: "read" },
  /** Operators, and account holders in their account. */
  manage: { roles: ["operator", "account_holder"], scope: "write" },
  operate: { roles: ["operator"], scope: "write" },
  /** About the gateway itself, which concerns only operators. */
  observe: { roles: ["operator"], scope: "read" },
  oversee: { roles: ["operator", "auditor"], scope: "read" },
} as const satisfies Record<string, Permission>;
