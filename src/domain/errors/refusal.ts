/** Why the gateway itself refused a request. Holds no word of what was asked. */
export interface Refusal {
  /** Of the request: what `x-request-id` said. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly status: number;
  readonly code: string | null;
  readonly explanation: RefusalExplanation;
}

export interface RefusalExplanation {
  /** The rule that refused, such as `tokens_per_minute`. */
  readonly rule: RefusalRule;
  /** One sentence for whoever has to act. */
  readonly summary: string;
  /** Undefined when nobody could be recognised. */
  readonly keyId?: string;
  /** Public id of the secret that was sent, when it had the form of a key. */
  readonly publicId?: string;
  readonly accountId?: string;
  readonly application?: string;
  readonly environment?: string;
  /** Alias, only of a configured model. */
  readonly model?: string;
  readonly window?: RefusalWindow;
}

export const refusalRules = [
  "key_missing",
  "key_malformed",
  "key_unknown",
  "key_mismatch",
  "key_disabled",
  "application_disabled",
  "account_disabled",
  "key_revoked",
  "key_removed",
  "key_expired",
  "secret_ended",
  "other_environment",
  "network_not_allowed",
  "snapshot_stale",
  "plan_missing",
  "requests_per_minute",
  "tokens_per_minute",
  "request_too_large",
  "uncapped_output",
  "guarantee_used_up",
  "pool_busy",
  "queue_full",
  "queue_deadline",
  "ledger_full",
  "draining",
  "overloaded",
  "upstream",
  "not_permitted",
  "not_signed_in",
  "wrong_credentials",
  "wrong_origin",
  "wrong_csrf_token",
  "too_many_requests",
  "storage_unavailable",
  "single_sign_on_unavailable",
  "image_memory_full",
  "body_memory_full",
] as const;
export type RefusalRule = (typeof refusalRules)[number];

/** The 60 seconds that were full. */
export interface RefusalWindow {
  readonly scopeId: string;
  readonly limit: number;
  /** Counted or reserved at the time. */
  readonly used: number;
  /** What the request asked for. */
  readonly requested: number;
  /** When it would have fitted if nothing else came; undefined: never. */
  readonly freeAt: number | undefined;
  /** What the window held: each second since the epoch of the process, oldest first. */
  readonly slots: readonly WindowSlot[];
}

/** What was admitted in one second and still counts. */
export interface WindowSlot {
  /** How long ago the second began, in milliseconds. */
  readonly ageMs: number;
  readonly requests: number;
  readonly tokens: number;
}
