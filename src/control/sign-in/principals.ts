import {
  scopes,
  type ManagementToken,
  type Principal,
  type User,
} from "../../domain/accounts/user.ts";

export function sessionPrincipal({ id, email, role, accountId }: User): Principal {
  return { kind: "session", userId: id, name: email, role, accountId, scopes };
}

export function tokenPrincipal(
  user: User,
  { id, scopes: granted }: Pick<ManagementToken, "id" | "scopes">,
): Principal {
  return { ...sessionPrincipal(user), kind: "token", tokenId: id, scopes: granted };
}

/** The principal of the local token, for which access to the data directory is required. */
export function localPrincipal(): Principal {
  const nobody = { userId: undefined, accountId: undefined };
  return { kind: "local", name: "local", role: "operator", scopes, ...nobody };
}
