import type { OperationCall } from "../operation/operation.ts";
import type { AnonymousAdminCall } from "../../edge/dispatch/route.ts";
import type { AdminSettings } from "../../config/config.ts";
import { scopes, type Principal } from "../../domain/principal.ts";
import type { AdminServices } from "../services.ts";
import type { Bootstrap } from "./bootstrap/bootstrap.ts";
import type { Passwords } from "./guard/passwords.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { z } from "zod";
import { parseStrictJson } from "../../edge/body/strict-json.ts";
import { parseFields } from "../operation/refusals.ts";
import type { User, ManagementToken } from "../../store/entities.ts";

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
  readonly how: "password" | "bootstrap" | "link" | "single_sign_on";
  readonly reason: string;
}

/** The call with the user who is signing in as its principal, for the audit. */
export function callOf(call: AnonymousAdminCall, user: User): OperationCall {
  const { id, signal, address } = call;
  return { id, signal, address, principal: sessionPrincipal(user), isSignIn: true };
}

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

/** Logs the reason, which the caller must not see. */
export function refuseSignIn(
  { onSignInRefused }: Pick<SignInServices, "onSignInRefused">,
  { id, address }: Pick<AnonymousAdminCall, "id" | "address">,
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
  link: "The link is wrong, used or expired. Ask an operator for another one.",
  single_sign_on: "The single sign-on has expired or was never started. Please start again.",
};

/** Reads a JSON body by its schema. Throws 400. */
export async function readFields<Schema extends z.ZodType>(
  call: { readBody(): Promise<Uint8Array> },
  schema: Schema,
): Promise<z.output<Schema>> {
  return parseFields(schema, parseStrictJson(await call.readBody()));
}
