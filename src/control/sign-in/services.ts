import type { OperationCall } from "../operation/operation.ts";
import type { AnonymousAdminCall } from "../../edge/dispatch/route.ts";
import type { AdminSettings } from "../../config/config.ts";
import type { User } from "../../domain/accounts/user.ts";
import type { AdminServices } from "../services.ts";
import type { Bootstrap } from "./bootstrap/bootstrap.ts";
import type { Passwords } from "./guard/passwords.ts";
import { sessionPrincipal } from "./principals.ts";

/** The dependencies of signing in. */
export interface SignInServices extends Pick<
  AdminServices,
  "store" | "clock" | "random" | "peppers" | "onKeysChanged"
> {
  readonly settings: AdminSettings;
  /** The admin listener's address for browsers, without a slash at its end. */
  readonly publicUrl: () => string;
  readonly passwords: Passwords;
  readonly bootstrap: Bootstrap;
  /** Called when a sign-in is refused; for the log. */
  readonly onSignInRefused: (refusal: SignInRefusal) => void;
}

/** Omits the email address, because people type passwords into that field. */
export interface SignInRefusal {
  readonly requestId: string;
  readonly address: string;
  readonly how: "password" | "bootstrap" | "single_sign_on";
  readonly reason: string;
}

/** The call with the user who is signing in as its principal, for the audit. */
export function callOf(call: AnonymousAdminCall, user: User): OperationCall {
  const { id, signal, address } = call;
  return { id, signal, address, principal: sessionPrincipal(user), isSignIn: true };
}
