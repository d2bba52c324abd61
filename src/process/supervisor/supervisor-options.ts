import type { Clock } from "../../domain/clock.ts";
import type { Crash } from "./crash-report.ts";
import type { GatewaySettings, Role } from "./messages.ts";
import type { HearWorker, StandbyLoss } from "./standby.ts";
import type { Worker } from "./worker.ts";

/** What happens after the end of a process. */
export interface AfterEnd {
  readonly nextStartMs: number | undefined;
  /** Undefined until control has read its configuration. */
  readonly settings: GatewaySettings | undefined;
}

export interface SupervisorOptions {
  readonly clock: Clock;
  readonly start: (onMessage: HearWorker) => Worker;
  /** Called before the wait for the next start, like `onStartRefused`. */
  readonly onCrash: (crash: Crash, after: AfterEnd) => void;
  /** The system refused to start a process, because its program or resources are missing. */
  readonly onStartRefused: (error: unknown, after: AfterEnd) => void;
  readonly onStandbyLost: (loss: StandbyLoss, settings: GatewaySettings | undefined) => void;
  /** Called when a process does not answer and is therefore ended. */
  readonly onSilent: (kind: Role["kind"], settings: GatewaySettings | undefined) => void;
  /** Called once, when the first worker serves. */
  readonly onServing: (settings: GatewaySettings) => void;
}
