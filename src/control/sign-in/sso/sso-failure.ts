import type * as Client from "openid-client";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";

/** What went wrong between the provider and us, for whoever wanted to sign in. */
export function readFailure(client: typeof Client, cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  if (cause instanceof client.AuthorizationResponseError) {
    return refused(`The identity provider refused: ${plain(cause.error)}.`, cause);
  }
  if (cause instanceof client.ResponseBodyError) {
    // The code was used, too old or of another client; anything else is a matter of settings.
    if (cause.error === "invalid_grant") return refused("The sign-on is over.", cause);
    return unavailable(`The identity provider answered '${plain(cause.error)}'.`, cause);
  }
  if (cause instanceof client.ClientError && untrustworthy.has(cause.code ?? "")) {
    return refused("The identity provider's answer does not belong to this sign-on.", cause);
  }
  return unavailable("The identity provider does not answer as it should.", cause);
}

/** Codes of what was received and is not what it should be. */
const untrustworthy: ReadonlySet<string> = new Set([
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
  "OAUTH_KEY_SELECTION_FAILED",
]);

/** Codes of the protocol have only such characters; anything else is not repeated. */
function plain(code: string): string {
  return /^[\w.:-]{1,100}$/.test(code) ? code : "an error";
}

function refused(what: string, cause: unknown): GatewayError {
  return new GatewayError("wrong_credentials", { message: `${what} Please begin again.`, cause });
}

function unavailable(what: string, cause: unknown): GatewayError {
  return new GatewayError("single_sign_on_unavailable", {
    message: `${what} Please try again, or tell the operator.`,
    headers: { "retry-after": "5" },
    cause,
  });
}
