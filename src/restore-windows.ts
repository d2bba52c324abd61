import type { Clock } from "./domain/clock.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { longestGuaranteeSeconds } from "./limits/slots.ts";
import { keyScopeId } from "./pipeline/admit.ts";
import { guaranteeScopeId } from "./pipeline/capacity/guarantee.ts";
import type { LimitStore, PastAdmission } from "./storage/store.ts";
import type { AdmittedUsage, UsageReports } from "./storage/usage-reports.ts";

export interface RestoreOptions {
  readonly ledger: Pick<Ledger, "isReplaying">;
  readonly reports: Pick<UsageReports, "admitted">;
  readonly limits: LimitStore;
  readonly clock: Clock;
}

/** Windows of plans forget what is older. */
const windowMs = 61_000;
/** Calls of a process that was killed come to the database by the replay; longer is not waited. */
const replayWaitMs = 5_000;
const pollMs = 10;

/**
 * Fills the windows of the limits with what the ledger knows of the last minute, and those of
 * guarantees with that of the last hour, so that a restart gives no key its time twice. A database
 * that is away leaves them empty.
 */
export async function restoreWindows(options: RestoreOptions): Promise<void> {
  const { ledger, reports, limits, clock } = options;
  if (limits.restore === undefined) return;
  const deadline = clock.monotonic() + replayWaitMs;
  while (ledger.isReplaying && clock.monotonic() < deadline) await Bun.sleep(pollMs);
  const admitted = await reports.admitted(clock.now() - windowMs).catch(() => []);
  const now = clock.now();
  const past = admitted.map((usage) => pastAdmission(usage, now));
  for (const [scopeId, ageMs] of oldestOfGuarantees(past)) await widen(limits, scopeId, ageMs);
  limits.restore(past);
}

function pastAdmission(
  { keyId, isGuarantee, at, requests, tokens }: AdmittedUsage,
  now: number,
): PastAdmission {
  const scopeId = isGuarantee ? guaranteeScopeId(keyId) : keyScopeId(keyId);
  // It was admitted at some time in its second: for a plan at its end, on the side of the operator,
  // for a guarantee at its begin, on the side of the customer.
  const ageMs = Math.max(0, now - at - (isGuarantee ? 0 : 1_000));
  return { scopeId, isGuarantee, ageMs, requests, tokens };
}

function oldestOfGuarantees(past: readonly PastAdmission[]): ReadonlyMap<string, number> {
  const oldest = new Map<string, number>();
  for (const { scopeId, isGuarantee = false, ageMs } of past) {
    if (isGuarantee) oldest.set(scopeId, Math.max(oldest.get(scopeId) ?? 0, ageMs));
  }
  return oldest;
}

/**
 * A window drops what is older than it counts, and how long a guarantee counts is only said with
 * its calls: one of no tokens, which goes at once, makes room for what is restored.
 */
async function widen(limits: LimitStore, scopeId: string, ageMs: number): Promise<void> {
  const seconds = Math.min(Math.ceil(ageMs / 1_000) + 2, longestGuaranteeSeconds);
  const callId = `${scopeId}/restore`;
  const unlimited = { requestsPerMinute: Infinity, tokensPerMinute: Infinity };
  const scopes = [
    { id: scopeId, limits: unlimited, guarantee: { seconds: Math.max(60, seconds) } },
  ];
  await limits.acquire({ callId, scopes, tokens: 0 });
  await limits.settle(callId, 0);
}
