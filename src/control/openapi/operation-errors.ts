import {
  adminErrors,
  gatewayErrors,
  type GatewayErrorName,
} from "../../domain/errors/gateway-error.ts";
import type { OperationDescription } from "../operation/operation.ts";

const rows = { ...gatewayErrors, ...adminErrors };

export function operationErrors(operation: OperationDescription) {
  const { isSignIn = false, method, path, roles, query, body, hasSecret = false } = operation;
  const isPassedOn = method === "POST" && operation.downloads !== undefined;
  const needsSession = roles.length > 0;
  const isChange = method !== "GET" && needsSession;
  const has = (field: string): boolean => body !== undefined && field in body.shape;
  // Single sign-on needs an identity provider, which may be unavailable or may not send a role.
  const isSso = path.includes("/sso/");
  const looksUp = path.includes("{") || method === "POST" || (query && "user_id" in query.shape);
  const hasBody = body !== undefined || isPassedOn;
  const possible: readonly (readonly [GatewayErrorName, boolean | undefined])[] = [
    ["invalid_value", true],
    ["not_signed_in", needsSession],
    ["wrong_credentials", isSignIn && (!needsSession || hasBody)],
    ["wrong_origin", true],
    ["wrong_csrf_token", isChange],
    ["not_permitted", !isSignIn || isChange || isSso],
    ["not_found", isSignIn ? isSso : looksUp],
    ["single_sign_on_unavailable", isSso],
    ["idempotency_key_reused", isChange && !isSignIn && !isPassedOn],
    ["reply_not_shown_again", isChange && hasSecret],
    ["already_exists", has("name")],
    ["pool_oversold", has("provisioned_units")],
    ["revision_conflict", method === "PATCH"],
    ["still_in_use", method === "DELETE" && !isSignIn],
    ["wrong_state", isChange],
    ["too_many_requests", true],
    ["internal_error", true],
    ["storage_unavailable", true],
    ["invalid_json", hasBody],
    ["missing_required_parameter", hasBody],
    ["invalid_type", hasBody],
    ["request_timeout", hasBody],
    ["request_too_large", hasBody],
    ["unsupported_content_type", hasBody],
  ];
  return possible.filter(([, can]) => can === true).map(([name]) => rows[name]);
}
