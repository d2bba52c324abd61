import type { AuditFields } from "../../domain/audit/audit.ts";
import { readTokenId } from "../../domain/accounts/management-token.ts";
import { about } from "../audit/audit-fields.ts";
import { change, type Change } from "../operation/change.ts";
import {
  handedReportSchema,
  labelledReportSchema,
  type LabelledReport,
  type LeakLabel,
  type ReportedLeak,
} from "../contract/leak-reports.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { findSecret } from "./find-secret.ts";
import { endSecret } from "../keys/end-secret.ts";
import { isLive } from "../keys/key-view.ts";
import type { Operation, OperationCall } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import type { AdminServices } from "../services.ts";

/** The stored length of a reported address. */
const keptUrlLength = 500;

export type LeakReportServices = Pick<
  AdminServices,
  "store" | "clock" | "onKeysChanged" | "peppers" | "revokesLeaks" | "onLeaksReported"
>;

/**
 * Reports of leaked credentials by signed-in users; `signed-leak-reports` handles those of
 * scanners.
 */
export function leakReportOperation(services: LeakReportServices): Operation {
  return defineOperation({
    id: "reportFoundLeaks",
    method: "POST",
    path: "/admin/v1/leaks/reports",
    resource: "Keys",
    summary: "Submit the report of a secret scanner",
    description:
      "`leaks` has the format of the secret scanning partner program. API keys and " +
      "management tokens of this gateway are recorded in the audit, and are ended only with " +
      "`admin.leak_reports.revoke`.",
    ...permissions.operate,
    body: handedReportSchema,
    answer: labelledReportSchema,
    run: ({ call, body }) => takeLeakReport(services, call, body.leaks),
  });
}

/** Audits our credentials in a report, ends them if so configured, and labels all items. */
export async function takeLeakReport(
  services: LeakReportServices,
  call: OperationCall,
  leaks: readonly ReportedLeak[],
): Promise<LabelledReport> {
  let ended = 0;
  const { data } = await change(services, call, async (changing) => {
    ended = 0;
    const made: LeakLabel[] = [];
    for (const leak of leaks) {
      const found = await findOwn(changing, leak, services);
      if (found !== undefined && (await found.note())) ended += 1;
      const label = found === undefined ? "false_positive" : "true_positive";
      made.push({ token_raw: leak.token, token_type: leak.type, label });
    }
    return { data: made };
  });
  const truePositives = data.filter(({ label }) => label === "true_positive").length;
  const falsePositives = data.length - truePositives;
  services.onLeaksReported({ truePositives, falsePositives, ended });
  return { data };
}

interface OwnLeak {
  /** Audits and, if so configured, ends the credential; returns whether it was live and ended. */
  note(): Promise<boolean>;
}

async function findOwn(
  changing: Change,
  leak: ReportedLeak,
  services: LeakReportServices,
): Promise<OwnLeak | undefined> {
  return (await findKey(changing, leak, services)) ?? findToken(changing, leak, services);
}

async function findKey(
  changing: Change,
  leak: ReportedLeak,
  { peppers, revokesLeaks }: LeakReportServices,
): Promise<OwnLeak | undefined> {
  const found = await findSecret(changing.transaction, leak.token.trim(), peppers);
  if (found === undefined) return undefined;
  const { secret, key } = found;
  return {
    async note() {
      await changing.audit({
        ...about("key", "leak_reported", key),
        after: { public_id: secret.publicId, ...foundAt(leak) },
      });
      const isEnding = revokesLeaks && key.revokedAt === undefined && isLive(secret, changing.now);
      if (isEnding) await endSecret(changing, { key, secret, verb: "leak" });
      return isEnding;
    },
  };
}

async function findToken(
  changing: Change,
  leak: ReportedLeak,
  { peppers, revokesLeaks }: LeakReportServices,
): Promise<OwnLeak | undefined> {
  const { tokens, users } = changing.transaction;
  const publicId = readTokenId(leak.token.trim());
  const token = publicId === undefined ? undefined : await tokens.findByPublicId(publicId);
  const isRight = peppers.match(leak.token.trim(), token?.digest) !== undefined;
  if (!isRight || token === undefined) return undefined;
  const accountId = (await users.get(token.userId))?.accountId;
  const owned = { id: token.id, accountId };
  return {
    async note() {
      const after = { public_id: token.publicId, ...foundAt(leak) };
      await changing.audit({ ...about("token", "leak_reported", owned), after });
      const isEnding = revokesLeaks && token.revokedAt === undefined;
      if (!isEnding) return false;
      const ended = await changing.transaction.tokens.revoke(token.id, changing.now);
      const revoked = { ended_with_it: ended.filter((id) => id !== token.id) };
      await changing.audit({ ...about("token", "leak", owned), after: revoked });
      return true;
    },
  };
}

function foundAt({ url, source, type }: ReportedLeak): AuditFields {
  return { url: url?.slice(0, keptUrlLength) ?? null, source: source ?? null, type };
}
