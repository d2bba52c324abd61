import type { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { Call } from "./call.ts";
import type { Candidate } from "./candidates.ts";
import type { TokenEstimator } from "./estimate.ts";
import type { ImageMemory } from "./image-memory.ts";
import type { MeterServices } from "./meter.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { Transport } from "./transport.ts";

/** What the steps of a call need from outside; `app.ts` makes it once. */
export interface PipelineServices extends MeterServices {
  readonly estimator: TokenEstimator;
  readonly random: () => number;
  readonly transport: Transport;
  readonly canConnect: (url: string, timeoutMs: number) => Promise<boolean>;
  /** All addresses of a host name. */
  readonly resolveHost: (hostname: string) => Promise<readonly string[]>;
  /** For images that are read by address. */
  readonly imageMemory: ImageMemory;
  /** Left through `onCallEnded`. */
  readonly running: Pick<RunningCalls, "enter">;
  readonly onAttemptFailed: (call: Call, candidate: Candidate, failure: UpstreamFailure) => void;
}
