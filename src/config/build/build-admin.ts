import type { RetentionSettings } from "../../domain/accounts/retention.ts";
import type { AdminSettings, AuditSettings, SsoSettings } from "../config.ts";
import type { ConfigFile } from "../schema/schema.ts";

export function buildAdmin(admin: ConfigFile["admin"]): AdminSettings {
  return {
    publicUrl: admin.public_url,
    hosts: admin.hosts,
    bootstrapToken: admin.bootstrap_token,
    sessionIdleMs: admin.session_idle,
    sessionAbsoluteMs: admin.session_absolute,
    requestsPerMinute: admin.requests_per_minute,
    signInsPerMinute: admin.sign_ins_per_minute,
    leakReports: {
      publicKeysUrl: admin.leak_reports.public_keys_url,
      publicKeys: admin.leak_reports.public_keys,
      revoke: admin.leak_reports.revoke,
    },
    sso: admin.sso === undefined ? undefined : buildSso(admin.sso),
  };
}

function buildSso(sso: NonNullable<ConfigFile["admin"]["sso"]>): SsoSettings {
  return {
    issuer: sso.issuer,
    clientId: sso.client_id,
    clientSecret: sso.client_secret,
    scopes: sso.scopes,
    roleClaim: sso.role_claim,
    roles: sso.roles,
    accountClaim: sso.account_claim,
    auditorsSeeAll: sso.auditors_see_all,
  };
}

export function buildAudit(audit: ConfigFile["audit"]): AuditSettings {
  return {
    checkpointIntervalMs: audit.checkpoint_interval,
    checkpointFile: audit.checkpoint_file,
  };
}

export function buildRetention(retention: ConfigFile["retention"]): RetentionSettings {
  return {
    callsMs: retention.calls,
    minutesMs: retention.minutes,
    hoursMs: retention.hours,
    daysMs: retention.days,
    auditMs: retention.audit,
    revokedKeysMs: retention.revoked_keys,
    intervalMs: retention.interval,
    batchRows: retention.batch_rows,
  };
}
