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
    when: "Email and password do not fit, the bootstrap token is wrong or spent, or single sign-on failed.",
  },
  wrong_origin: {
    status: 403,
    type: "permission_error",
    code: "wrong_origin",
    when: "It comes from a page of another origin, or a session changes something without the header `origin`.",
  },
  wrong_csrf_token: {
    status: 403,
    type: "permission_error",
    code: "wrong_csrf_token",
    when: "A session changes something without the header `x-csrf-token` of `GET /admin/v1/session`.",
  },
  not_permitted: {
    status: 403,
    type: "permission_error",
    code: "not_permitted",
    when: "The role, the account or the token's scopes do not allow the request.",
  },
  unknown_host: {
    status: 421,
    type: "invalid_request_error",
    code: "unknown_host",
    when: "The admin listener does not answer to the request's `Host`; `admin.hosts` names those it answers to.",
  },
  not_found: {
    status: 404,
    type: "invalid_request_error",
    code: "not_found",
    when: "There is no such thing, or it belongs to another account.",
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
    when: "It was changed since the revision that the request names. Read it again, then repeat.",
  },
  still_in_use: {
    status: 409,
    type: "invalid_request_error",
    code: "still_in_use",
    when: "Something that is alive belongs to it, such as a key to an application.",
  },
  wrong_state: {
    status: 409,
    type: "invalid_request_error",
    code: "wrong_state",
    when: "It cannot be done in this state, such as rotating a revoked key.",
  },
  pool_oversold: {
    status: 409,
    type: "invalid_request_error",
    code: "pool_oversold",
    when: "The pool cannot hold the units beside those that are sold; `details` has the arithmetic.",
  },
  idempotency_key_reused: {
    status: 422,
    type: "invalid_request_error",
    code: "idempotency_key_reused",
    when: "The `Idempotency-Key` was used for another request.",
  },
  reply_not_shown_again: {
    status: 409,
    type: "invalid_request_error",
    code: "reply_not_shown_again",
    when: "The request was done, and its answer held a secret that may not be shown any more.",
  },
  too_many_requests: {
    status: 429,
    type: "requests",
    code: "too_many_requests",
    when: "Too many requests of the control plane, or too many wrong passwords; `retry-after` says how long to wait.",
  },
  single_sign_on_unavailable: {
    status: 503,
    type: "server_error",
    code: "single_sign_on_unavailable",
    when: "The identity provider cannot be reached, or does not take this client's settings.",
  },
  storage_unavailable: {
    status: 503,
    type: "server_error",
    code: "storage_unavailable",
    when: "The database cannot be used now.",
  },
} as const;
