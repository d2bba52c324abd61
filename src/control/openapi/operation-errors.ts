import {
  adminErrors,
  gatewayErrors,
  type GatewayErrorName,
} from "../../domain/errors/gateway-error.ts";
import type { OperationDescription } from "../operation/operation.ts";

const rows = { ...gatewayErrors, ...adminErrors };

/** The errors that an operation can answer with. */
export function operationErrors(operation: OperationDescription) {
  const own = operation.isSignIn === true ? ofSignIn(operation) : ofOperation(operation);
  return [...own, ...ofBody(operation)].map((name) => rows[name]);
}

type Names = readonly GatewayErrorName[];

function ofOperation(operation: OperationDescription): Names {
  return [
    "invalid_value",
    "not_signed_in",
    "wrong_origin",
    "not_permitted",
    "too_many_requests",
    "internal_error",
    "storage_unavailable",
    ...ofParameters(operation),
    ...ofChanges(operation),
  ];
}

/** Gives the names if the condition holds. */
function when(condition: boolean, ...names: Names): Names {
  return condition ? names : [];
}

function ofSignIn({ method, roles, path, body }: OperationDescription): Names {
  const isSignedIn = roles.length > 0;
  const isChange = method !== "GET" && isSignedIn;
  return [
    "invalid_value",
    ...when(isSignedIn, "not_signed_in"),
    ...when(!isSignedIn || body !== undefined, "wrong_credentials"),
    "wrong_origin",
    ...when(isChange, "wrong_csrf_token", "not_permitted", "wrong_state"),
    // Single sign-on needs an identity provider, which may be unavailable or may not send a role.
    ...when(path.includes("/sso/"), "not_found", "not_permitted", "single_sign_on_unavailable"),
    ...when(body !== undefined && "name" in body.shape, "already_exists"),
    "too_many_requests",
    "internal_error",
    "storage_unavailable",
  ];
}

function ofParameters({ path, method, query }: OperationDescription): Names {
  const asksForUser = query !== undefined && "user_id" in query.shape;
  return when(path.includes("{") || method === "POST" || asksForUser, "not_found");
}

function ofChanges({ method, body, hasSecret }: OperationDescription): Names {
  if (method === "GET") return [];
  const has = (field: string): boolean => body !== undefined && field in body.shape;
  return [
    "wrong_csrf_token",
    "idempotency_key_reused",
    ...when(hasSecret === true, "reply_not_shown_again"),
    ...when(has("name"), "already_exists"),
    ...when(has("provisioned_units"), "pool_oversold"),
    ...when(method === "PATCH", "revision_conflict"),
    ...when(method === "DELETE", "still_in_use"),
    "wrong_state",
  ];
}

function ofBody({ body }: OperationDescription): Names {
  return when(
    body !== undefined,
    "invalid_json",
    "missing_required_parameter",
    "invalid_type",
    "request_timeout",
    "request_too_large",
    "unsupported_content_type",
  );
}
