/**
 * Errors that only the control plane has. `docs/admin-api.md` repeats this table, and a test keeps
 * the two equal.
 */
export const adminErrors = {
  not_signed_in: {
    status: 401,
    type: "authentication_error",
    code: "not_signed_in",
    when: "No session or management token was sent, or it has ended.",
  },
  wrong_credentials: {
    status: 401,
    type: "authentication_error",
    code: "wrong_credentials",
    when: "The password, bootstrap token or single sign-on was rejected.",
  },
  wrong_origin: {
    status: 403,
    type: "permission_error",
    code: "wrong_origin",
    when: "The `origin` of the request is missing or is another site.",
  },
  wrong_csrf_token: {
    status: 403,
    type: "permission_error",
    code: "wrong_csrf_token",
    when: "The header `x-csrf-token` does not match the session's.",
  },
  not_permitted: {
    status: 403,
    type: "permission_error",
    code: "not_permitted",
    when: "The role, the account or the token's scopes do not allow it.",
  },
  unknown_host: {
    status: 421,
    type: "invalid_request_error",
    code: "unknown_host",
    when: "The admin listener does not answer to this `Host`.",
  },
  not_found: {
    status: 404,
    type: "invalid_request_error",
    code: "not_found",
    when: "It does not exist, or belongs to another account.",
  },
  already_exists: {
    status: 409,
    type: "invalid_request_error",
    code: "already_exists",
    when: "The name or email address is taken.",
  },
  revision_conflict: {
    status: 409,
    type: "invalid_request_error",
    code: "revision_conflict",
    when: "It was changed since the revision that the request names.",
  },
  still_in_use: {
    status: 409,
    type: "invalid_request_error",
    code: "still_in_use",
    when: "Something depends on it, such as a key on its application.",
  },
  wrong_state: {
    status: 409,
    type: "invalid_request_error",
    code: "wrong_state",
    when: "Its state forbids it, such as rotating a revoked key.",
  },
  pool_oversold: {
    status: 409,
    type: "invalid_request_error",
    code: "pool_oversold",
    when: "The pool has not enough units left; `details` has the figures.",
  },
  idempotency_key_reused: {
    status: 422,
    type: "invalid_request_error",
    code: "idempotency_key_reused",
    when: "The `Idempotency-Key` belongs to another request.",
  },
  reply_not_shown_again: {
    status: 409,
    type: "invalid_request_error",
    code: "reply_not_shown_again",
    when: "The request succeeded, but its secret can no longer be shown.",
  },
  too_many_requests: {
    status: 429,
    type: "requests",
    code: "too_many_requests",
    when: "Too many requests or wrong passwords; `retry-after` has the wait.",
  },
  single_sign_on_unavailable: {
    status: 503,
    type: "server_error",
    code: "single_sign_on_unavailable",
    when: "The identity provider is unreachable or rejects this client.",
  },
  storage_unavailable: {
    status: 503,
    type: "server_error",
    code: "storage_unavailable",
    when: "The database is unavailable.",
  },
} as const;
