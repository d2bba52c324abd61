import type { Principal } from "../../domain/principal.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { notFound } from "../operation/scope.ts";
import { readOnce } from "../values/read-once.ts";

/* Tokens and sessions belong to a user: others find them only as operators. */

/** The user whose things a list shows; undefined: all users. Throws 404. */
export function listedUser(principal: Principal, wanted: string | undefined): string | undefined {
  const userId = principal.role === "operator" ? wanted : principal.userId;
  if (wanted !== undefined && wanted !== userId) throw notFound("user");
  return userId;
}

/** The thing if it is the principal's own, or the principal an operator; else 404. */
export function requireOwn<Owned extends { readonly userId: string }>(
  owned: Owned | undefined,
  { userId, role }: Principal,
  what: string,
): Owned {
  if (owned !== undefined && (owned.userId === userId || role === "operator")) return owned;
  throw notFound(what);
}

/** Email addresses of users; empty for one that is gone. */
export function readEmails({ users }: ControlView): (userId: string) => Promise<string> {
  return readOnce(async (userId) => (await users.get(userId))?.email ?? "");
}
