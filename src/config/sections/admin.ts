import { z } from "zod";
import type { RetentionSettings } from "../../domain/accounts/retention.ts";
import { credential, duration, flag, httpUrl, text, wholeNumber } from "../../settings/values.ts";
import { isNetwork } from "../../domain/network.ts";

/** The control plane: sessions, single sign-on, and how long what is kept. */

const claim = (about: string, initial: string) => text(about).prefault(initial).describe(about);

const ssoSchema = z
  .strictObject({
    issuer: httpUrl("Address of the identity provider, as its discovery document names it."),
    client_id: text("What the provider calls this client."),
    client_secret: credential("Secret of the client. Without it the client is public.").optional(),
    scopes: z
      .array(text("A scope."))
      .max(20)
      .refine((scopes) => scopes.includes("openid"), "must have openid among them")
      .prefault(["openid", "profile", "email"])
      .describe("What is asked of the provider; `openid` must be among it."),
    role_claim: claim("Claim of the ID token that holds the user's groups or roles.", "groups"),
    roles: z
      .record(text("A value of `role_claim`."), z.enum(["operator", "account_holder", "auditor"]))
      .prefault({})
      .describe(
        "Role by a value of `role_claim`; of several, the one that may most. Who has none may not " +
          "sign in.",
      ),
    account_claim: claim(
      "Claim that holds the name or id of an account holder's or auditor's account.",
      "account",
    ),
    auditors_see_all: flag(
      "Whether an auditor without `account_claim` sees all accounts. Else it may not sign in.",
      false,
    ),
  })
  .describe("OpenID Connect. Without it, users sign in with passwords only.")
  .transform((sso) => ({
    issuer: sso.issuer,
    clientId: sso.client_id,
    clientSecret: sso.client_secret,
    scopes: sso.scopes,
    roleClaim: sso.role_claim,
    roles: sso.roles,
    accountClaim: sso.account_claim,
    auditorsSeeAll: sso.auditors_see_all,
  }));

const hostPattern =
  /^(?:\*|\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9_])?)$/;
const hostProblem =
  "must be a host without port, such as metrics.internal, a network such as 10.0.0.0/8, or '*'";

const leakReportsSchema = z
  .strictObject({
    public_keys_url: httpUrl(
      "Where a secret scanner publishes the keys of its signatures, such as " +
        "`https://api.github.com/meta/public_keys/secret_scanning`.",
    ).optional(),
    public_keys: z
      .record(text("Identifier of the key."), text("The key as PEM: ECDSA on P-256."))
      .prefault({})
      .describe("Keys by their identifier, beside those of `public_keys_url`."),
    revoke: flag("Whether a key or management token that is reported is ended at once.", false),
  })
  .prefault({})
  .describe("Reports of secret scanners. Without keys, only who is signed in can hand them in.")
  .transform((reports) => ({
    publicKeysUrl: reports.public_keys_url,
    publicKeys: reports.public_keys,
    revoke: reports.revoke,
  }));

export const adminSchema = z
  .strictObject({
    public_url: httpUrl(
      "Address at which browsers reach the admin listener: decides cookies, origins and redirects. " +
        "Without it, `http://` and `listen.admin`.",
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
        "Hosts, without port, at which the admin listener answers beside loopback names, that of " +
          "`listen.admin` and that of `public_url`: names, addresses, networks such as " +
          "`10.0.0.0/8`, or `*` for any. Others get 421, but for `/healthz` and `/readyz`.",
      ),
    bootstrap_token: credential(
      "One-time token that makes the first operator, at least 16 characters. Without it, one is " +
        "printed at the first start.",
      16,
    ).optional(),
    session_idle: duration({
      about: "How long a session may be silent.",
      min: "1m",
      max: "24h",
      initial: "30m",
    }),
    session_absolute: duration({
      about: "How long a session lives at most.",
      min: "5m",
      max: "7d",
      initial: "12h",
    }),
    requests_per_minute: wholeNumber({
      about:
        "Most requests of the control plane by one user, with all its tokens, or from one address; five " +
        "times as many by all users of an account.",
      min: 10,
      max: 1_000_000,
      initial: 600,
    }),
    sign_ins_per_minute: wholeNumber({
      about:
        "Wrong passwords for one user from one address before further tries have to wait: 30 s, then " +
        "twice as long each time, up to 15 min. Five times as many from one address for all users, and " +
        "four times where the user signed in before, with waits up to 1 min. Also a fifth of the " +
        "single sign-ons that one address may begin in a minute.",
      min: 1,
      max: 1000,
      initial: 5,
    }),
    leak_reports: leakReportsSchema,
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
    leakReports: admin.leak_reports,
    sso: admin.sso,
  }));

export const auditSchema = z
  .strictObject({
    checkpoint_interval: duration({
      about: "How often the log is told, signed, where the audit ends.",
      min: "1m",
      max: "24h",
      initial: "1h",
    }),
    checkpoint_file: text(
      "File that each checkpoint is added to as a line of JSON, relative to the working directory; " +
        "best where the gateway may add but not change. Without it, checkpoints are in the log only.",
    ).optional(),
  })
  .prefault({})
  .describe("The record of changes.")
  .transform((audit) => ({
    checkpointIntervalMs: audit.checkpoint_interval,
    checkpointFile: audit.checkpoint_file,
  }));

const keep = (about: string, initial: string) =>
  duration({ about, min: "1h", max: "36500d", initial });

export const retentionSchema = z
  .strictObject({
    calls: keep("Single calls of the ledger.", "90d"),
    minutes: keep("Sums by the minute.", "7d"),
    hours: keep("Sums by the hour.", "90d"),
    days: keep("Sums by the day.", "1825d"),
    audit: keep("Entries of the audit.", "3650d"),
    revoked_keys: keep("Keys after they were revoked, and secrets after their end.", "90d"),
    interval: duration({
      about: "How often what is too old is removed.",
      min: "1s",
      max: "24h",
      initial: "10m",
    }),
    batch_rows: wholeNumber({
      about: "Most rows removed in one transaction.",
      min: 1,
      max: 100_000,
      initial: 1000,
    }),
  })
  .prefault({})
  .describe("How long data is kept.")
  .transform((retention): RetentionSettings => ({
    callsMs: retention.calls,
    minutesMs: retention.minutes,
    hoursMs: retention.hours,
    daysMs: retention.days,
    auditMs: retention.audit,
    revokedKeysMs: retention.revoked_keys,
    intervalMs: retention.interval,
    batchRows: retention.batch_rows,
  }));

export type AdminSettings = Readonly<z.output<typeof adminSchema>>;
export type SsoSettings = Readonly<z.output<typeof ssoSchema>>;
