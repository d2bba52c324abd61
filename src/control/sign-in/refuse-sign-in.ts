import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { SignInRefusal, SignInServices } from "./services.ts";

export interface RefusedCall {
  readonly id: string;
  readonly address: string;
}

/** Logs the reason, which the caller must not see. */
export function refuseSignIn(
  { onSignInRefused }: Pick<SignInServices, "onSignInRefused">,
  { id, address }: RefusedCall,
  { how, reason }: Pick<SignInRefusal, "how" | "reason">,
): GatewayError {
  onSignInRefused({ requestId: id, address, how, reason });
  return new GatewayError("wrong_credentials", { message: messages[how] });
}

const messages: Readonly<Record<SignInRefusal["how"], string>> = {
  password: "The email address or password is wrong, or the user is disabled.",
  bootstrap:
    "The one-time token is wrong, used or expired. As long as there is no operator, a " +
    "restart of the gateway prints a new one.",
  single_sign_on: "The single sign-on has expired or was never started. Please start again.",
};
