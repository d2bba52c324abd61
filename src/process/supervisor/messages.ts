import type { LogLevel } from "../../telemetry/log/logger.ts";

/** What the processes of one gateway tell each other, as JSON over the channel of the runtime. */

/** What the supervisor needs of the configuration, so that it need not read it itself. */
export interface WorkerSettings {
  /** Absolute. */
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly logFormat: "text" | "json";
  /** How many workers there are to be. */
  readonly workers: number;
  /** Whether there is a file to read again; without one, SIGHUP ends the gateway. */
  readonly isReloadable: boolean;
  /** Whether a worker is to wait for one to end. */
  readonly hasStandby: boolean;
}

/** What may be told of an exception: its message may quote a prompt, so it stays behind. */
export interface FailureFacts {
  /** Name of the error's class. */
  readonly error: string;
  /** Functions and places in this program, innermost first. */
  readonly positions: readonly string[];
}

export type WorkerMessage =
  | ({ readonly kind: "settings" } & WorkerSettings)
  /** It ends at once and wants to be started again with this limit of fetches. */
  | { readonly kind: "again"; readonly fetchLimit: number }
  /** It serves; with these arguments its successor serves at the addresses that were any before. */
  | { readonly kind: "started"; readonly addresses: readonly string[] }
  /** An exception that nobody caught ends it. */
  | ({ readonly kind: "failure"; readonly residentBytes: number } & FailureFacts);

/** What the supervisor passes on; a terminal and an init system may signal the worker as well. */
export type PassedSignal = "SIGTERM" | "SIGINT" | "SIGHUP";

export type SupervisorMessage =
  | { readonly kind: "signal"; readonly name: PassedSignal }
  /** It is to serve, with these arguments behind its own; before, it opens nothing. */
  | { readonly kind: "begin"; readonly addresses: readonly string[] };

/** Both ends are of one version, and nobody else has the channel: the kind says what it is. */
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
