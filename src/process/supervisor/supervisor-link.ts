import { failureFacts } from "./failure-facts.ts";
import {
  isSupervisorMessage,
  type Beginning,
  type PassedSignal,
  type ChildMessage,
  type GatewaySettings,
} from "./messages.ts";

/** Connects a command to its supervisor, if it has one. */
export interface SupervisorLink {
  /** Resolves once this process may serve. */
  readonly begun: Promise<Beginning>;
  /** Resolves once a successor serves, or is waiting to. */
  readonly replaced: Promise<void>;
  /** Resolves once the process that this one replaces has ended. */
  readonly mayTakeOver: Promise<void>;
  tellSettings(settings: GatewaySettings): void;
  /** Reports that the process listens and waits until it may take over. */
  tellWaiting(): void;
  /** Reports that the process serves. */
  tellStarted(addresses: readonly string[]): void;
  /** Reports why the process ends before it serves. */
  tellNotStarted(reason: string): void;
  /** Reports an uncaught exception, which ends the process. */
  tellFailure(thrown: unknown): void;
}

export interface LinkOptions {
  readonly onSignal: (signal: PassedSignal) => void;
  /** Exits this process as failed. */
  readonly endNow: () => void;
}

/**
 * Connects this process to its supervisor: it takes signals only from there and exits when the
 * supervisor is gone. Must run before any await, or an early signal is lost.
 */
export function connectToSupervisor({ onSignal, endNow }: LinkOptions): SupervisorLink {
  const begun = Promise.withResolvers<Beginning>();
  const replaced = Promise.withResolvers<void>();
  const mayTakeOver = Promise.withResolvers<void>();
  const tell = (message: ChildMessage): void => void process.send?.(message);
  process.on("message", (value: unknown) => {
    if (!isSupervisorMessage(value)) return;
    switch (value.kind) {
      case "begin":
        return begun.resolve(value);
      case "replaced":
        return replaced.resolve();
      case "take-over":
        return mayTakeOver.resolve();
      case "ping":
        return tell({ kind: "pong" });
      case "signal":
        return onSignal(value.name);
    }
  });
  // Running calls are in the spool, and an orphaned gateway must not continue unnoticed.
  process.on("disconnect", endNow);
  ignoreOwnSignals();
  return {
    begun: begun.promise,
    replaced: replaced.promise,
    mayTakeOver: mayTakeOver.promise,
    tellSettings: (settings) => tell({ kind: "settings", ...settings }),
    tellWaiting: () => tell({ kind: "waiting" }),
    tellStarted: (addresses) => tell({ kind: "started", addresses }),
    tellNotStarted: (reason) => tell({ kind: "not-started", reason }),
    tellFailure(thrown) {
      const residentBytes = process.memoryUsage.rss();
      tell({ kind: "failure", residentBytes, ...failureFacts(thrown) });
    },
  };
}

/** Terminals and init systems signal the whole group: the copy would count as a second request. */
function ignoreOwnSignals(): void {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => undefined);
}

/** Otherwise the open channel keeps an idle process alive. */
export function disconnectFromSupervisor(): void {
  process.removeAllListeners("disconnect");
  if (process.connected) process.disconnect?.();
}
