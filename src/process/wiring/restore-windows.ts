import type { Clock } from "../../domain/clock.ts";
import type { Plan } from "../../domain/limits/plan.ts";
import { countedSlots, limitHistoryMs, slotMs } from "../../domain/limits/slots.ts";
import { guaranteeScopeId } from "../../admission/guarantee.ts";
import { accountScopeId, keyScopeId } from "../../admission/plan-scopes.ts";
import type { LimitStore, PastAdmission } from "../../store/store.ts";
import type { AdmittedUsage, UsageReports } from "../../store/usage-reports.ts";

export interface RestoreOptions {
  readonly reports: Pick<UsageReports, "admitted">;
  readonly limits: Pick<LimitStore, "restore">;
  readonly clock: Clock;
  readonly plans: ReadonlyMap<string, Pick<Plan, "overrunFactor">>;
}

/**
 * Restores the limit windows from the ledger, so that a restart does not give a key its limit
 * twice. Plans go back as far as a debt can reach (one window per multiple of the limit that may be
 * owed), guarantees an hour. If the database cannot be read, the windows stay empty.
 */
export async function restoreWindows(options: RestoreOptions): Promise<void> {
  const { reports, limits, clock, plans } = options;
  if (limits.restore === undefined) return;
  const overrunFactor = Math.max(0, ...[...plans.values()].map((plan) => plan.overrunFactor));
  const historyMs = Math.min((1 + overrunFactor) * countedSlots * slotMs, limitHistoryMs);
  const admitted = await reports.admitted(clock.now() - historyMs).catch(() => []);
  const now = clock.now();
  limits.restore(admitted.flatMap((usage) => pastAdmissions(usage, now)));
}

function pastAdmissions(usage: AdmittedUsage, now: number): readonly PastAdmission[] {
  const { limitScope, accountId, isGuarantee, at, requests, tokens } = usage;
  // The time within the second is unknown. Plans count it at the end of the second, in the
  // operator's favour, guarantees at the start, in the customer's.
  const ageMs = Math.max(0, now - at - (isGuarantee ? 0 : 1_000));
  const counted = { isGuarantee, ageMs, requests, tokens };
  if (isGuarantee) return [{ ...counted, scopeId: guaranteeScopeId(limitScope) }];
  const scopeIds = [keyScopeId(limitScope), accountScopeId(accountId)];
  return scopeIds.map((scopeId) => ({ ...counted, scopeId }));
}
