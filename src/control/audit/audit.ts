import type { z } from "zod";
import { type AuditRecord, readCheckpoint } from "../../store/audit.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import {
  auditEntrySchema,
  auditQuerySchema,
  auditVerdictSchema,
  auditVerifyQuerySchema,
  type AuditEntryView,
} from "../contract/audit.ts";
import { listOf } from "../contract/values.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { invalidField } from "../operation/refusals.ts";
import {
  emptyList,
  listAnswer,
  pageRequest,
  listScope,
  requireUnbound,
} from "../operation/scope.ts";
import type { AuditExpectation } from "../../store/control-store.ts";
import type { AdminServices } from "../services.ts";
import { readTime } from "../values/time-range.ts";
import { timeText, viewAs } from "../values/api-form.ts";

/** Who changed what, and whether the audit is complete. */
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
    query: auditQuerySchema,
    answer: listOf(auditEntrySchema),
    run({ call, query }) {
      const scope = listScope(call.principal, query.account_id);
      const now = clock.now();
      const { actor_id: actorId, subject_id: subjectId, action } = query;
      const filter = {
        accountId: scope.accountId,
        actorId,
        subjectId,
        action,
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

function verifyAudit({ store, peppers }: AdminServices): Operation {
  return defineOperation({
    id: "verifyAudit",
    method: "GET",
    path: "/admin/v1/audit/verify",
    resource: "Audit",
    summary: "Verify the audit",
    description: "Reads every entry. For operators, and auditors who see all accounts.",
    ...permissions.oversee,
    query: auditVerifyQuerySchema,
    answer: auditVerdictSchema,
    async run({ call, query }) {
      requireUnbound(call.principal);
      const expected = readExpected(query, peppers);
      const { isIntact, entries, lastDigest, problem, first } = await store.verifyAudit(
        call.signal,
        expected,
      );
      return {
        is_intact: isIntact,
        entries,
        last_digest: lastDigest,
        problem: problem ?? null,
        first: first === undefined ? null : { sequence: first.sequence, at: timeText(first.at) },
      };
    },
  });
}

function readExpected(
  { expect, checkpoint }: z.output<typeof auditVerifyQuerySchema>,
  peppers: Peppers,
): AuditExpectation {
  if (checkpoint === undefined) return { digest: expect };
  if (expect !== undefined) throw invalidField("expect", "send it or a checkpoint, not both");
  const known = readCheckpoint(checkpoint, peppers);
  if (known !== undefined) return known;
  const problem = "this installation did not write it, or its pepper of that time is gone";
  throw invalidField("checkpoint", problem);
}

function viewEntry(entry: AuditRecord): AuditEntryView {
  const { kind, id, name } = entry.actor;
  return viewAs(auditEntrySchema, entry, {
    actor: { kind, id: id ?? null, name },
    before: plain(entry.before),
    after: plain(entry.after),
  });
}

/** Copies an entry, which holds plain JSON, to a JSON type. */
function plain(fields: AuditRecord["before"]): AuditEntryView["before"] {
  return fields === undefined ? null : auditEntrySchema.shape.before.parse(fields);
}
