import type { Key } from "../../domain/keys/key.ts";
import type { Principal } from "../../domain/accounts/user.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";

type Disabling = Pick<Key, "disabledAt" | "disabledBy">;

export interface DisablingWish {
  /** Undefined: unchanged. */
  readonly disabled: boolean | undefined;
  readonly principal: Principal;
  readonly now: number;
}

/**
 * When and by whom a key or an application was disabled, after a change. Only operators enable what
 * an operator disabled, even if it was disabled before. Throws 403.
 */
export function disablingAfter(
  { disabledAt, disabledBy }: Disabling,
  { disabled, principal, now }: DisablingWish,
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
    const { accountId } = principal;
    throw new GatewayError("not_permitted", {
      message,
      param: "disabled",
      explanation: { rule: "not_permitted", summary: message, ...(accountId && { accountId }) },
    });
  }
  return { disabledAt: undefined, disabledBy: undefined };
}
