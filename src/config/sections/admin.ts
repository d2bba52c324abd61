import { z } from "zod";
import {
  camelCased,
  credential,
  duration,
  flag,
  httpUrl,
  text,
  wholeNumber,
} from "../../settings/values.ts";
import { isNetwork } from "../../domain/network.ts";
import type { RetentionSettings } from "../../domain/settings.ts";

const claim = (about: string, initial: string) => text(about).prefault(initial).describe(about);

const ssoSchema = z
  .strictObject({
    issuer: httpUrl("As in the provider's discovery document."),
    client_id: text("Client id at the provider."),
    client_secret: credential("Client secret. Without it the client is public.").optional(),
    scopes: z
      .array(text("A scope."))
      .max(20)
      .refine((scopes) => scopes.includes("openid"), "must include openid")
      .prefault(["openid", "profile", "email"])
      .describe("Scopes to request; must include `openid`."),
    role_claim: claim("Claim of the ID token that holds the user's groups or roles.", "groups"),
    roles: z
      .record(text("A value of `role_claim`."), z.enum(["operator", "account_holder", "auditor"]))
      .prefault({})
      .describe(
        "Role for each value of `role_claim`. The most powerful match wins; without one the " +
          "user may not sign in.",
      ),
    account_claim: claim(
      "Claim with the name or id of an account holder's or auditor's account.",
      "account",
    ),
    auditors_see_all: flag(false).describe(
      "An auditor without `account_claim` sees all accounts; otherwise it may not sign in.",
    ),
  })
  .describe("OpenID Connect. Without it, users sign in with passwords only.")
  .transform(camelCased);

const hostPattern =
  /^(?:\*|\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9_])?)$/;
const hostProblem =
  "must be a host without port, such as metrics.internal, a network such as 10.0.0.0/8, or '*'";

export const adminSchema = z
  .strictObject({
    public_url: httpUrl(
      "Address at which browsers reach the admin listener. Default: `http://` and " +
        "`listen.admin`.",
    ).optional(),
    hosts: z
      .array(
        z
          .string()
          .refine((host) => isNetwork(host) || hostPattern.test(host), hostProblem)
          .transform((host) => host.toLowerCase()),
      )
      .max(100)
      .prefault([])
      .describe(
        "Hosts, without port, that the admin listener answers to besides loopback, " +
          "`listen.admin` and `public_url`: names, addresses, networks such as `10.0.0.0/8`, or " +
          "`*`. Others get 421, except on `/healthz` and `/readyz`.",
      ),
    bootstrap_token: credential(
      "One-time token that creates the first operator. Default: one is printed at the start.",
      16,
    ).optional(),
    session_idle: duration("30m", ["1m", "24h"]).describe(
      "A session ends after this long without a request.",
    ),
    session_absolute: duration("12h", ["5m", "7d"]).describe("Maximum lifetime of a session."),
    requests_per_minute: wholeNumber(600, [10, 1_000_000]).describe(
      "Maximum requests by one user, or from one address. The users of an account together " +
        "have five times as many.",
    ),
    sign_ins_per_minute: wholeNumber(5, [1, 1000]).describe(
      "Wrong passwords for one user from one address before a wait of 30 s, which doubles up " +
        "to 15 min. One address has five times as many for all users, and as many single " +
        "sign-ons a minute.",
    ),
    sso: ssoSchema.optional(),
  })
  .refine((admin) => admin.session_absolute >= admin.session_idle, {
    path: ["session_absolute"],
    error: "must not be shorter than admin.session_idle",
  })
  .prefault({})
  .describe("The control plane.")
  .transform((admin) => ({
    publicUrl: admin.public_url,
    hosts: admin.hosts,
    bootstrapToken: admin.bootstrap_token,
    sessionIdleMs: admin.session_idle,
    sessionAbsoluteMs: admin.session_absolute,
    requestsPerMinute: admin.requests_per_minute,
    signInsPerMinute: admin.sign_ins_per_minute,
    sso: admin.sso,
  }));

export const auditSchema = z
  .strictObject({
    checkpoint_interval: duration("1h", ["1m", "24h"]).describe(
      "How often a signed checkpoint of the audit is logged.",
    ),
    checkpoint_file: text(
      "File to which checkpoints are appended as JSON lines. Default: they are only logged.",
    ).optional(),
  })
  .prefault({})
  .describe("The record of administrative changes.")
  .transform((audit) => ({
    checkpointIntervalMs: audit.checkpoint_interval,
    checkpointFile: audit.checkpoint_file,
  }));

const keep = (about: string, initial: string) =>
  duration(initial, ["1h", "36500d"]).describe(about);

export const retentionSchema = z
  .strictObject({
    calls: keep("Single calls of the ledger.", "90d"),
    hours: keep("Sums by hour.", "90d"),
    days: keep("Sums by day.", "1825d"),
    audit: keep("Entries of the audit.", "3650d"),
    revoked_keys: keep("Revoked keys and ended secrets.", "90d"),
    interval: duration("10m", ["1s", "24h"]).describe("How often expired data is removed."),
    batch_rows: wholeNumber(1000, [1, 5_000]).describe("Maximum rows removed per transaction."),
  })
  .prefault({})
  .describe("How long data is kept.")
  .transform((retention): RetentionSettings => ({
    callsMs: retention.calls,
    hoursMs: retention.hours,
    daysMs: retention.days,
    auditMs: retention.audit,
    revokedKeysMs: retention.revoked_keys,
    intervalMs: retention.interval,
    batchRows: retention.batch_rows,
  }));

export type AdminSettings = Readonly<z.output<typeof adminSchema>>;
export type SsoSettings = Readonly<z.output<typeof ssoSchema>>;
