import { bearer, type CredentialForm, maskApiKey } from "../domain/keys/api-key.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import { retryHeaders } from "../domain/limits/headers.ts";
import type { Key } from "../domain/keys/key.ts";
import type { RefusalExplanation, RefusalRule } from "../domain/errors/refusal.ts";
import type { Call } from "../snapshot/call.ts";

/** The credential that a request sent. */
export interface SentKey {
  /** The text that the credential form read from the headers. */
  readonly text: string;
  readonly form: CredentialForm;
  /** Undefined unless the text has the form of a key. */
  readonly publicId: string | undefined;
  /** Name of the environment the request was sent to. */
  readonly environment: string;
}

/** Why a key is refused; callers are not shown it. */
export interface KeyFault {
  readonly rule: keyof typeof summaries;
  /** When the fault began, in milliseconds since the epoch, if known. */
  readonly at?: number | undefined;
}

/** `when` is empty or starts with a space. */
const summaries = {
  key_missing: (_when, { name }) => `The request has no ${name}.`,
  key_malformed: () =>
    "What was sent is not a complete API key: its format or its checksum is wrong.",
  key_unknown: () =>
    "No key has this public id, or none that worked recently: it ended long ago, was removed, or " +
    "belongs to another gateway.",
  key_mismatch: () => "The public id is that of a known key, but the rest of the secret is wrong.",
  key_disabled: (when) => `The key was disabled${when}. It works again once it is enabled.`,
  application_disabled: (when) => `The application of the key was disabled${when}.`,
  account_disabled: (when) => `The account of the key was disabled${when}.`,
  key_revoked: (when) => `The key was revoked${when}, permanently. Issue a new one.`,
  key_removed: (when) => `The key was removed${when}, alone or with its application or account.`,
  key_expired: (when) => `The key expired${when}. It works again if its expiry is moved.`,
  secret_ended: (when) =>
    `This secret of the key ended${when}, by a rotation, a leak check or a user. The key's ` +
    "newest secret still works.",
  other_environment: () =>
    "The key belongs to a different environment than the host of the request.",
} as const satisfies Partial<Record<RefusalRule, (when: string, form: CredentialForm) => string>>;

function summaryOf({ rule, at }: KeyFault, form = bearer): string {
  return summaries[rule](at === undefined ? "" : ` at ${new Date(at).toISOString()}`, form);
}

/** The 401, the same for every fault. Pass the key only when its digest matched. */
export function invalidKey(fault: KeyFault, sent: SentKey, key?: Key): GatewayError {
  return new GatewayError("invalid_api_key", {
    message:
      `${whatIsWrong(sent)} Send the key of your application for this environment in ` +
      `the ${sent.form.header}.`,
    explanation: explain(fault.rule, summaryOf(fault, sent.form), { sent, key }),
  });
}

/** Says only what the sender can see for itself: every well-formed key gets the same message. */
function whatIsWrong({ text, publicId }: SentKey): string {
  if (text === "") return "You didn't provide an API key.";
  const wrong = `Incorrect API key provided: ${maskApiKey(text)}.`;
  if (publicId === undefined) return wrong;
  return `${wrong} It may have been rotated, revoked or expired.`;
}

/** The key ended while its call ran; `fault` says how, if known. */
export function keyEnded(
  { caller, environment }: Pick<Call, "caller" | "environment">,
  fault: KeyFault = { rule: "key_disabled" },
): GatewayError {
  const { key, publicId } = caller;
  const sent = { publicId, environment: environment.name };
  const summary = `${summaryOf(fault)} The call was ended while it ran.`;
  return new GatewayError("invalid_api_key", {
    message: "The API key was revoked or disabled while this request ran.",
    explanation: explain(fault.rule, summary, { sent, key }),
  });
}

/** The database is unavailable, so the key can be neither accepted nor refused. */
export function snapshotStale(sent: SentKey, key?: Key): GatewayError {
  const summary =
    key === undefined
      ? "The key is unknown here, and the database is unavailable, so the key may be new."
      : "The key is known, but the database has not answered for longer than auth.snapshot_max_age.";
  return new GatewayError("model_unavailable", {
    message: "API keys cannot be checked at the moment. Please retry with exponential backoff.",
    headers: retryHeaders(5_000),
    explanation: explain("snapshot_stale", summary, { sent, key }),
  });
}

export function networkNotAllowed(sent: SentKey, key: Key, address: string): GatewayError {
  const networks = (key.allowedNetworks ?? []).slice(0, 20).join(", ");
  return new GatewayError("network_not_allowed", {
    message: "This API key may not be used from your network address.",
    explanation: explain(
      "network_not_allowed",
      `The request came from ${address}, and the key is for ${networks || "no network"} alone.`,
      { sent, key },
    ),
  });
}

/** A key without limits must not pass; it is valid, so it gets a 503, not a 401. */
export function planMissing(sent: SentKey, key: Key): GatewayError {
  return new GatewayError("model_unavailable", {
    message: "The usage plan of this API key is not configured. Please contact the operator.",
    headers: { "x-should-retry": "false" },
    explanation: explain(
      "plan_missing",
      `The plan '${key.plan}' of the key is not in the configuration, and it has no limits of its own.`,
      { sent, key },
    ),
  });
}

function explain(
  rule: RefusalRule,
  summary: string,
  {
    sent,
    key,
  }: { readonly sent: Pick<SentKey, "publicId" | "environment">; readonly key: Key | undefined },
): RefusalExplanation {
  return {
    rule,
    summary,
    environment: sent.environment,
    ...(sent.publicId !== undefined && { publicId: sent.publicId }),
    ...(key !== undefined && {
      keyId: key.id,
      accountId: key.accountId,
      application: key.application,
    }),
  };
}
