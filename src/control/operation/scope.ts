import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { notPermitted } from "./refusals.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Page, PageRequest } from "../../store/control-store.ts";
import type { Key } from "../../domain/keys/key.ts";

/** What a principal may see: everything, or what belongs to one account. */
interface AccountScope {
  /** The account for a list's filter; undefined: all accounts. */
  readonly accountId: string | undefined;
  /** True when the requested account may not be seen, so that its lists are empty. */
  readonly isEmpty: boolean;
}

/** The scope of a list. `wanted` is the account that the request names. */
export function listScope(principal: Principal, wanted?: string): AccountScope {
  const { accountId } = principal;
  if (accountId === undefined) return { accountId: wanted, isEmpty: false };
  return { accountId, isEmpty: wanted !== undefined && wanted !== accountId };
}

/** The entity if it exists and may be seen; else 404, which reveals nothing of other accounts. */
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

/** Requires a principal that sees all accounts. Throws 403. */
export function requireUnbound(principal: Principal): void {
  if (principal.accountId === undefined) return;
  throw notPermitted("This covers all accounts, but you can see only one. Ask an operator.");
}

export function notFound(what: string): GatewayError {
  return new GatewayError("not_found", { message: `This ${what} does not exist.` });
}

export function pageRequest(query: { limit: number; cursor?: string | undefined }): PageRequest {
  return { limit: query.limit, after: query.cursor };
}

export function listAnswer<Entity, Item>(
  page: Page<Entity>,
  view: (entity: Entity) => Item,
): { data: Item[]; next_cursor: string | null } {
  return { data: page.items.map(view), next_cursor: page.next ?? null };
}

/** The list of another account, which looks like an empty one. */
export const emptyList = { data: [], next_cursor: null };

type Disabling = Pick<Key, "disabledAt" | "disabledBy">;

/**
 * When and by whom a key or an application was disabled, after a change. Only operators enable what
 * an operator disabled, even if it was disabled before. Throws 403.
 */
export function disablingAfter(
  { disabledAt, disabledBy }: Disabling,
  {
    disabled,
    principal,
    now,
  }: { disabled: boolean | undefined; principal: Principal; now: number },
): Disabling {
  if (disabled === undefined) return { disabledAt, disabledBy };
  const isOperator = principal.role === "operator";
  const isOperators = disabledAt !== undefined && disabledBy === "operator";
  if (disabled) {
    const by = isOperator || isOperators ? "operator" : principal.role;
    return { disabledAt: disabledAt ?? now, disabledBy: by };
  }
  if (isOperators && !isOperator) {
    const message = "An operator disabled it, so only an operator can enable it. Ask one.";
    throw notPermitted(message, "disabled");
  }
  return { disabledAt: undefined, disabledBy: undefined };
}
