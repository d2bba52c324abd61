import { scopes, type Principal, type Scope, type User } from "../../domain/user.ts";

export function sessionPrincipal(user: User): Principal {
  return { ...describe(user), kind: "session", scopes };
}

export function tokenPrincipal(user: User, granted: readonly Scope[]): Principal {
  return { ...describe(user), kind: "token", scopes: granted };
}

/** Whoever can read the data directory. */
export function localPrincipal(): Principal {
  return {
    kind: "local",
    userId: undefined,
    name: "local",
    role: "operator",
    accountId: undefined,
    scopes,
  };
}

function describe({ id, email, role, accountId }: User): Omit<Principal, "kind" | "scopes"> {
  return { userId: id, name: email, role, accountId };
}
