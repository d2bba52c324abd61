import type { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { Call } from "../snapshot/call.ts";
import type { EndUserScopes } from "../admission/end-user-scopes.ts";
import type { CapacityGate } from "../admission/capacity/place.ts";
import type { Calendar } from "../domain/money/calendar.ts";
import type { TokenEstimator } from "../admission/estimate/estimate.ts";
import type { OnHookFailed } from "./hooks.ts";
import type { CountingTargets } from "./counting-targets.ts";
import type { MemoryGate } from "../domain/waiting/memory-gate.ts";
import type { MeterServices } from "./metering/meter.ts";
import type { OverloadGuard } from "../admission/overload/overload.ts";
import type { Sessions } from "../routing/affinity.ts";
import type { Destination } from "../routing/candidates.ts";
import type { RetryBudgets } from "../routing/retry-budget.ts";
import type { TargetHealth } from "../routing/health/target-health.ts";
import type { LabelServices } from "./labels.ts";
import type { ValueTags } from "./opaque/value-tags.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { TargetProber } from "./attempts/target-prober.ts";
import type { Transport } from "../upstream-client/transport.ts";

/** What the steps of a call depend on; `app.ts` builds it once. */
export interface CallServices extends MeterServices, LabelServices {
  readonly estimator: TokenEstimator;
  readonly calendar: Calendar;
  readonly random: () => number;
  /** Of what only upstreams understand. */
  readonly tags: ValueTags;
  readonly sessions: Pick<Sessions, "of" | "cacheKey">;
  readonly transport: Transport;
  /** All addresses of a host name. */
  readonly resolveHost: (hostname: string) => Promise<readonly string[]>;
  /** Used for images fetched by URL. */
  readonly imageMemory: MemoryGate;
  readonly imageMemoryBytes: number;
  /** Left through `onCallEnded`. */
  readonly running: Pick<RunningCalls, "enter" | "watch" | "leave" | "ending">;
  readonly health: Pick<TargetHealth, "tryBegin" | "view" | "inFlightOf">;
  readonly prober: Pick<TargetProber, "probe">;
  readonly budget: RetryBudgets;
  readonly capacity: CapacityGate;
  /** For calls whose class is known only after admission; the listener checks the others. */
  readonly overload: Pick<OverloadGuard, "refusesAdmitted" | "refusal">;
  readonly endUsers: Pick<EndUserScopes, "of">;
  readonly onHookFailed: OnHookFailed;
  /** `decision`: where a failed attempt is retried, or why it is not. */
  readonly onRetryDecided: (alias: string, decision: string) => void;
  readonly onAttemptFailed: (call: Call, candidate: Destination, failure: UpstreamFailure) => void;
  readonly counting: Pick<CountingTargets, "isResting" | "failed">;
  readonly onCountFailed: (call: Call, candidate: Destination, failure: UpstreamFailure) => void;
  /** Called once per stream that had any. */
  readonly onMalformedEvents: (call: Call, candidate: Destination, count: number) => void;
}
