import type { AuditRecord } from "../domain/audit.ts";
import {
  auditEntrySchema,
  auditQuerySchema,
  auditVerdictSchema,
  type AuditEntryView,
} from "./contract/audit.ts";
import { listOf } from "./contract/values.ts";
import { defineOperation } from "./define-operation.ts";
import { emptyList, listAnswer, pageRequest } from "./list-page.ts";
import type { Operation } from "./operation.ts";
import { permissions } from "./permissions.ts";
import { listScope, requireUnbound } from "./scope.ts";
import type { AdminServices } from "./services.ts";
import { readTime } from "./time-range.ts";
import { timeText } from "./time-text.ts";

/** Who changed what, and whether the record of it is whole. */
export function auditOperations(services: AdminServices): readonly Operation[] {
  return [listAudit(services), verifyAudit(services)];
}

function listAudit({ store, clock }: AdminServices): Operation {
  return defineOperation({
    id: "listAudit",
    method: "GET",
    path: "/admin/v1/audit",
    resource: "Audit",
    summary: "List changes, newest first",
    ...permissions.read,
    status: 200,
    query: auditQuerySchema,
    answer: listOf(auditEntrySchema),
    run({ call, query }) {
      const scope = listScope(call.principal, query.account_id);
      const now = clock.now();
      const filter = {
        accountId: scope.accountId,
        actorId: query.actor_id,
        action: query.action,
        subjectId: query.subject_id,
        since: query.since === undefined ? undefined : readTime(query.since, "since", now),
        until: query.until === undefined ? undefined : readTime(query.until, "until", now),
      };
      return store.read(async (view) =>
        scope.isEmpty
          ? emptyList
          : listAnswer(await view.audit.list(filter, pageRequest(query)), viewEntry),
      );
    },
  });
}

function verifyAudit({ store }: AdminServices): Operation {
  return defineOperation({
    id: "verifyAudit",
    method: "GET",
    path: "/admin/v1/audit/verify",
    resource: "Audit",
    summary: "Check the chain of the audit",
    description: "Reads every entry. For operators, and auditors who see all accounts.",
    ...permissions.oversee,
    status: 200,
    answer: auditVerdictSchema,
    async run({ call }) {
      requireUnbound(call.principal);
      const verdict = await store.verifyAudit(call.signal);
      return {
        is_intact: verdict.isIntact,
        entries: verdict.entries,
        last_digest: verdict.lastDigest,
        problem: verdict.problem ?? null,
      };
    },
  });
}

function viewEntry(entry: AuditRecord): AuditEntryView {
  const { kind, id, name } = entry.actor;
  return {
    sequence: entry.sequence,
    at: timeText(entry.at),
    actor: { kind, id: id ?? null, name },
    address: entry.address ?? null,
    request_id: entry.requestId ?? null,
    action: entry.action,
    subject: { ...entry.subject },
    account_id: entry.accountId ?? null,
    before: plain(entry.before),
    after: plain(entry.after),
    digest: entry.digest,
  };
}

/** Entries hold plain JSON; the copy is one whose type says so. */
function plain(fields: AuditRecord["before"]): AuditEntryView["before"] {
  return fields === undefined ? null : auditEntrySchema.shape.before.parse(fields);
}
