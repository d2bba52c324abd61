import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Principal } from "../../domain/accounts/user.ts";

export interface NotPermittedDetails {
  /** Who asked; undefined while nobody is known. */
  readonly principal?: Principal | undefined;
  /** The field at fault. */
  readonly param?: string;
}

/** 403: what is asked is not this principal's to do. The message says whose, or what to do. */
export function notPermitted(
  message: string,
  { principal, param }: NotPermittedDetails = {},
): GatewayError {
  const accountId = principal?.accountId;
  return new GatewayError("not_permitted", {
    message,
    param: param ?? null,
    explanation: {
      rule: "not_permitted",
      summary: message,
      ...(accountId !== undefined && { accountId }),
    },
  });
}
