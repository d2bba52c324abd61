import type { Clock } from "./domain/clock.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { keyScopeId } from "./pipeline/admit.ts";
import type { LimitStore } from "./storage/store.ts";
import type { UsageReports } from "./storage/usage-reports.ts";

export interface RestoreOptions {
  readonly ledger: Pick<Ledger, "isReplaying">;
  readonly reports: Pick<UsageReports, "admitted">;
  readonly limits: LimitStore;
  readonly clock: Clock;
}

/** Windows forget what is older. */
const windowMs = 61_000;
/** Calls of a process that was killed come to the database by the replay; longer is not waited. */
const replayWaitMs = 5_000;
const pollMs = 10;

/**
 * Fills the windows of the limits with what the ledger knows of the last minute, so that a restart
 * gives no key its minute twice. A database that is away leaves them empty.
 */
export async function restoreWindows(options: RestoreOptions): Promise<void> {
  const { ledger, reports, limits, clock } = options;
  if (limits.restore === undefined) return;
  const deadline = clock.monotonic() + replayWaitMs;
  while (ledger.isReplaying && clock.monotonic() < deadline) await Bun.sleep(pollMs);
  const admitted = await reports.admitted(clock.now() - windowMs).catch(() => []);
  limits.restore(
    admitted.map(({ keyId, at, requests, tokens }) => ({
      scopeId: keyScopeId(keyId),
      // At the end of its second: it was admitted at some time in it.
      ageMs: Math.max(0, clock.now() - at - 1_000),
      requests,
      tokens,
    })),
  );
}
