import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Principal } from "../../domain/accounts/user.ts";

/** What somebody may see: everything, or what belongs to one account. */
export interface AccountScope {
  /** To be put into a list's filter; undefined: of all accounts. */
  readonly accountId: string | undefined;
  /** True when a list was asked of an account that may not be seen: it is as if it had nothing. */
  readonly isEmpty: boolean;
}

/** For lists. `wanted` is the account that the request names. */
export function listScope(principal: Principal, wanted?: string): AccountScope {
  const { accountId } = principal;
  if (accountId === undefined) return { accountId: wanted, isEmpty: false };
  return { accountId, isEmpty: wanted !== undefined && wanted !== accountId };
}

/** The entity, if it is there and may be seen; else 404, which tells nothing of other accounts. */
export function requireVisible<Entity extends { readonly accountId: string | undefined }>(
  entity: Entity | undefined,
  principal: Principal,
  what: string,
): Entity {
  if (entity === undefined || !maySee(principal, entity.accountId)) throw notFound(what);
  return entity;
}

export function maySee(principal: Principal, accountId: string | undefined): boolean {
  return principal.accountId === undefined || principal.accountId === accountId;
}

/** For what belongs to no account, and to who sees all of them. Throws 403. */
export function requireUnbound(principal: Principal): void {
  if (principal.accountId === undefined) return;
  throw new GatewayError("not_permitted", {
    message: "This is about all accounts; you may see one. Ask an operator.",
  });
}

export function notFound(what: string): GatewayError {
  return new GatewayError("not_found", { message: `There is no such ${what}.` });
}
