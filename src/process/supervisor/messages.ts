import type { LogLevel } from "../../telemetry/log/logger.ts";

/** Messages between the processes of one gateway, sent as JSON over the runtime's channel. */

/** Settings the supervisor needs, so that it does not read the configuration itself. */
export interface WorkerSettings {
  /** Absolute. */
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly logFormat: "text" | "json";
  /** Number of workers to run. */
  readonly workers: number;
  /** Whether there is a configuration file to reload; without one, SIGHUP ends the gateway. */
  readonly isReloadable: boolean;
  /** Whether to keep a standby worker. */
  readonly hasStandby: boolean;
}

/** What may be reported of an exception. Its message may quote a prompt and is left out. */
export interface FailureFacts {
  /** Name of the error's class. */
  readonly error: string;
  /** Functions and places in this program, innermost first. */
  readonly positions: readonly string[];
}

export type WorkerMessage =
  | ({ readonly kind: "settings" } & WorkerSettings)
  /** The worker exits and wants to be restarted with this fetch limit. */
  | { readonly kind: "again"; readonly fetchLimit: number }
  /** The worker serves; its successor gets these arguments to listen on the same addresses. */
  | { readonly kind: "started"; readonly addresses: readonly string[] }
  /** An uncaught exception ends the worker. */
  | ({ readonly kind: "failure"; readonly residentBytes: number } & FailureFacts);

/** Signals the supervisor forwards; terminals and init systems may signal the worker too. */
export type PassedSignal = "SIGTERM" | "SIGINT" | "SIGHUP";

export type SupervisorMessage =
  | { readonly kind: "signal"; readonly name: PassedSignal }
  /** Start serving with these additional arguments; until then the worker opens nothing. */
  | { readonly kind: "begin"; readonly addresses: readonly string[] };

/** Both ends run the same version and nothing else uses the channel, so the kind is proof enough. */
export function isWorkerMessage(value: unknown): value is WorkerMessage {
  return isOfKind(value, ["settings", "again", "started", "failure"]);
}

export function isSupervisorMessage(value: unknown): value is SupervisorMessage {
  return isOfKind(value, ["signal", "begin"]);
}

function isOfKind(value: unknown, kinds: readonly unknown[]): boolean {
  return (
    typeof value === "object" && value !== null && "kind" in value && kinds.includes(value.kind)
  );
}
