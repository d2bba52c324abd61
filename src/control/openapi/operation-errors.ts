import type { GatewayErrorName } from "../../domain/errors/gateway-error.ts";
import type { OperationDescription } from "../operation/operation.ts";

/** What an operation can be answered with when it does not go well. */
export function operationErrors(operation: OperationDescription): readonly GatewayErrorName[] {
  if (operation.isSignIn === true) return [...ofSignIn(operation), ...ofBody(operation)];
  return [...always, ...ofParameters(operation), ...ofChanges(operation), ...ofBody(operation)];
}

const always = [
  "invalid_value",
  "not_signed_in",
  "wrong_origin",
  "not_permitted",
  "too_many_requests",
  "internal_error",
  "storage_unavailable",
] as const satisfies readonly GatewayErrorName[];

function ofSignIn(operation: OperationDescription): readonly GatewayErrorName[] {
  const { method, roles, path, body } = operation;
  const isSignedIn = roles.length > 0;
  const isChange = method !== "GET" && isSignedIn;
  return [
    "invalid_value",
    ...(isSignedIn ? (["not_signed_in"] as const) : []),
    ...(isSignedIn && body === undefined ? [] : (["wrong_credentials"] as const)),
    "wrong_origin",
    ...(isChange ? (["wrong_csrf_token", "not_permitted", "wrong_state"] as const) : []),
    ...(path.includes("/sso/") ? ofSingleSignOn : []),
    ...(body !== undefined && "name" in body.shape ? (["already_exists"] as const) : []),
    "too_many_requests",
    "internal_error",
    "storage_unavailable",
  ];
}

/** It is not there without an identity provider, which may also be away or know no role. */
const ofSingleSignOn = [
  "not_found",
  "not_permitted",
  "single_sign_on_unavailable",
] as const satisfies readonly GatewayErrorName[];

function ofParameters({ path, method, query }: OperationDescription): readonly GatewayErrorName[] {
  const asksForUser = query !== undefined && "user_id" in query.shape;
  return path.includes("{") || method === "POST" || asksForUser ? ["not_found"] : [];
}

function ofChanges({ method, body, hasSecret }: OperationDescription): readonly GatewayErrorName[] {
  if (method === "GET") return [];
  const repeated: readonly GatewayErrorName[] = [
    "wrong_csrf_token",
    "idempotency_key_reused",
    ...(hasSecret === true ? (["reply_not_shown_again"] as const) : []),
  ];
  const names = body !== undefined && "name" in body.shape;
  return [
    ...repeated,
    ...(names ? (["already_exists"] as const) : []),
    ...(body !== undefined && "provisioned_units" in body.shape
      ? (["pool_oversold"] as const)
      : []),
    ...(method === "PATCH" ? (["revision_conflict"] as const) : []),
    ...(method === "DELETE" ? (["still_in_use"] as const) : []),
    "wrong_state",
  ];
}

function ofBody({ body }: OperationDescription): readonly GatewayErrorName[] {
  if (body === undefined) return [];
  return [
    "invalid_json",
    "missing_required_parameter",
    "invalid_type",
    "request_timeout",
    "request_too_large",
    "unsupported_content_type",
  ];
}
