import {
  scopes,
  type ManagementToken,
  type Principal,
  type User,
} from "../../domain/accounts/user.ts";

export function sessionPrincipal(user: User): Principal {
  return { ...describe(user), kind: "session", scopes };
}

export function tokenPrincipal(
  user: User,
  { id, scopes: granted }: Pick<ManagementToken, "id" | "scopes">,
): Principal {
  return { ...describe(user), kind: "token", tokenId: id, scopes: granted };
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

function describe({
  id,
  email,
  role,
  accountId,
}: User): Omit<Principal, "kind" | "scopes" | "tokenId"> {
  return { userId: id, name: email, role, accountId };
}
