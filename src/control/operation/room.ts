import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Principal } from "../../domain/principal.ts";

interface Room {
  readonly ofUser: number;
  readonly all: number;
  /** What the caller is told to close some of. */
  readonly what: string;
}

/** Of all that is open, what users of accounts may hold. */
const shareOfAccounts = 3 / 4;

/**
 * Throws 429 unless a principal may hold one more of what is open; `holders` has an item for each.
 * An account holds at most as much as all accounts leave free, so there is room for another one, and
 * for operators always.
 */
export function requireRoom(
  holders: Iterable<{ readonly principal: Principal }>,
  principal: Principal,
  { ofUser, all, what }: Room,
): void {
  const others = Array.from(holders, (holder) => holder.principal);
  const count = (isMeant: (other: Principal) => boolean): number => others.filter(isMeant).length;
  const { accountId } = principal;
  const own = count((other) => userOf(other) === userOf(principal));
  const ofAccounts = count((other) => other.accountId !== undefined);
  const ofAccount = count((other) => other.accountId === accountId);
  const isInShare = accountId === undefined || ofAccount < all * shareOfAccounts - ofAccounts;
  if (own < ofUser && others.length < all && isInShare) return;
  throw new GatewayError("too_many_requests", {
    message: `Too many ${what} are open. Close some, or retry your request when they have ended.`,
    headers: { "retry-after": "5" },
  });
}

/** All sessions and tokens of a user count together, and those of the machine. */
function userOf({ userId, kind }: Principal): string {
  return userId ?? kind;
}
