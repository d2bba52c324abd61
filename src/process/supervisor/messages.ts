import type { PortUse } from "../../edge/listen.ts";
import type { LogLevel } from "../../telemetry/log/logger.ts";

/** Messages between the processes of one gateway, sent as JSON over the runtime's channel. */

/** The task of a process of the gateway; `number` counts from 1. */
export type Role =
  | { readonly kind: "control" }
  | {
      readonly kind: "worker";
      readonly number: number;
      /** Path of the socket on which control listens. */
      readonly socket: string;
    };

/** Settings the supervisor needs, so that it does not read the configuration itself. */
export interface GatewaySettings {
  /** Absolute. */
  readonly dataDir: string;
  /** Path of the socket on which control listens. */
  readonly socket: string;
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

export type ChildMessage =
  /** Sent by control. */
  | ({ readonly kind: "settings" } & GatewaySettings)
  /** A successor of control listens, and waits until it may take over. */
  | { readonly kind: "waiting" }
  /** The process serves; its successor gets these arguments to listen on the same addresses. */
  | { readonly kind: "started"; readonly addresses: readonly string[] }
  /** Answers a ping. */
  | { readonly kind: "pong" }
  /** The process ends before it serves, for this reason. */
  | { readonly kind: "not-started"; readonly reason: string }
  /** An uncaught exception ends the worker. */
  | ({ readonly kind: "failure"; readonly residentBytes: number } & FailureFacts);

/** Signals the supervisor forwards; terminals and init systems may signal the worker too. */
export type PassedSignal = "SIGTERM" | "SIGINT" | "SIGHUP";

export type SupervisorMessage =
  | { readonly kind: "signal"; readonly name: PassedSignal }
  /** A successor serves, or is waiting to: finish what is open, then end. */
  | { readonly kind: "replaced" }
  /** The process that this one replaces has ended. */
  | { readonly kind: "take-over" }
  /** Asks whether the process answers. */
  | { readonly kind: "ping" }
  /** Begin in this role, with these additional arguments. Until then the process opens nothing. */
  | ({ readonly kind: "begin" } & Beginning);

export interface Beginning {
  readonly role: Role;
  readonly portUse: Exclude<PortUse, "alone">;
  readonly addresses: readonly string[];
}

/** Both ends run the same version and nothing else uses the channel, so the kind is proof enough. */
export function isChildMessage(value: unknown): value is ChildMessage {
  return isOfKind(value, ["settings", "waiting", "started", "pong", "not-started", "failure"]);
}

export function isSupervisorMessage(value: unknown): value is SupervisorMessage {
  return isOfKind(value, ["signal", "replaced", "take-over", "ping", "begin"]);
}

function isOfKind(value: unknown, kinds: readonly unknown[]): boolean {
  return (
    typeof value === "object" && value !== null && "kind" in value && kinds.includes(value.kind)
  );
}
