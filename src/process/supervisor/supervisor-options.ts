import type { Clock } from "../../domain/clock.ts";
import type { Crash } from "./crash-report.ts";
import type { GatewaySettings } from "./messages.ts";
import type { HearWorker, StandbyLoss } from "./standby.ts";
import type { Worker } from "./worker.ts";

/** What follows the end of a process. */
export interface AfterEnd {
  readonly nextStartMs: number | undefined;
  /** Undefined while control has not read its configuration. */
  readonly settings: GatewaySettings | undefined;
}

export interface SupervisorOptions {
  readonly clock: Clock;
  readonly start: (onMessage: HearWorker) => Worker;
  /** Called before the wait for the next start, like `onStartRefused`. */
  readonly onCrash: (crash: Crash, after: AfterEnd) => void;
  /** The system refused to start a process: its program is missing, or resources are. */
  readonly onStartRefused: (error: unknown, after: AfterEnd) => void;
  readonly onStandbyLost: (loss: StandbyLoss, settings: GatewaySettings | undefined) => void;
  /** Called once, when the first worker serves. */
  /** Called when control does not answer, and is ended for that. */
  readonly onSilent: (settings: GatewaySettings | undefined) => void;
  readonly onServing: (settings: GatewaySettings) => void;
}
