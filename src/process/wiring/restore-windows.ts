import type { Clock } from "../../domain/clock.ts";
import type { Plan } from "../../domain/limits/plan.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { countedSlots, limitHistoryMs, slotMs } from "../../domain/limits/slots.ts";
import { guaranteeScopeId } from "../../admission/guarantee.ts";
import { accountScopeId, keyScopeId } from "../../admission/plan-scopes.ts";
import type { LimitStore, PastAdmission } from "../../store/store.ts";
import type { AdmittedUsage, UsageReports } from "../../store/usage-reports.ts";

export interface RestoreOptions {
  readonly ledger: Pick<Ledger, "isReplaying">;
  readonly reports: Pick<UsageReports, "admitted">;
  readonly limits: LimitStore;
  readonly clock: Clock;
  readonly plans: ReadonlyMap<string, Pick<Plan, "overrunFactor">>;
}

/** Calls of a process that was killed come to the database by the replay; longer is not waited. */
const replayWaitMs = 5_000;
const pollMs = 10;

/**
 * Fills the windows of the limits with what the ledger knows of the time before, so that a restart
 * gives no key its minute twice: of plans as far back as a debt can reach, which is a window for
 * each time the limit that may be owed, and of guarantees an hour. A database that cannot be read
 * leaves them empty.
 */
export async function restoreWindows(options: RestoreOptions): Promise<void> {
  const { ledger, reports, limits, clock, plans } = options;
  if (limits.restore === undefined) return;
  const deadline = clock.monotonic() + replayWaitMs;
  while (ledger.isReplaying && clock.monotonic() < deadline) await Bun.sleep(pollMs);
  const overrunFactor = Math.max(0, ...[...plans.values()].map((plan) => plan.overrunFactor));
  const historyMs = Math.min((1 + overrunFactor) * countedSlots * slotMs, limitHistoryMs);
  const admitted = await reports.admitted(clock.now() - historyMs).catch(() => []);
  const now = clock.now();
  limits.restore(admitted.flatMap((usage) => pastAdmissions(usage, now)));
}

function pastAdmissions(usage: AdmittedUsage, now: number): readonly PastAdmission[] {
  const { limitScope, accountId, isGuarantee, at, requests, tokens } = usage;
  // It was admitted at some time in its second: for a plan at its end, on the side of the operator,
  // for a guarantee at its begin, on the side of the customer.
  const ageMs = Math.max(0, now - at - (isGuarantee ? 0 : 1_000));
  const counted = { isGuarantee, ageMs, requests, tokens };
  if (isGuarantee) return [{ ...counted, scopeId: guaranteeScopeId(limitScope) }];
  const scopeIds = [keyScopeId(limitScope), accountScopeId(accountId)];
  return scopeIds.map((scopeId) => ({ ...counted, scopeId }));
}
