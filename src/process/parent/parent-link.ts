import { failureFacts } from "../failure-facts.ts";
import {
  type Beginning,
  type ChildMessage,
  type GatewaySettings,
  type ParentMessage,
  type PassedSignal,
} from "./child.ts";

export type ParentLink = ReturnType<typeof connectToParent>;

export interface LinkOptions {
  readonly onSignal: (signal: PassedSignal) => void;
  /** Exits this process as failed. */
  readonly endNow: () => void;
}

/**
 * Connects this process to its parent: it takes signals only from there and exits when the parent is
 * gone. Must run before any await, or an early signal is lost.
 */
export function connectToParent({ onSignal, endNow }: LinkOptions) {
  const begun = Promise.withResolvers<Beginning>();
  const replaced = Promise.withResolvers<void>();
  const tell = (message: ChildMessage): void => void process.send?.(message);
  const passedAtMs = new Map<PassedSignal, number>();
  process.on("message", (message: ParentMessage) => {
    switch (message.kind) {
      case "begin":
        return begun.resolve(message);
      case "replaced":
        return replaced.resolve();
      case "signal":
        passedAtMs.set(message.name, performance.now());
        return onSignal(message.name);
    }
  });
  // Running calls are in the spool, and an orphaned gateway must not continue unnoticed.
  process.on("disconnect", endNow);
  ignoreOwnSignals((signal) => {
    const wasPassed = performance.now() - (passedAtMs.get(signal) ?? -Infinity) <= 2 * passingMs;
    if (process.connected && !wasPassed) tell({ kind: "ignored", signal });
  });
  return {
    /** Resolves once this process may serve. */
    begun: begun.promise,
    /** Resolves once a successor serves. */
    replaced: replaced.promise,
    tellSettings: (settings: GatewaySettings) => tell({ kind: "settings", ...settings }),
    tellStarted: (addresses: readonly string[]) => tell({ kind: "started", addresses }),
    tellNotStarted: (reason: string) => tell({ kind: "not-started", reason }),
    tellFailure: (thrown: unknown) => tell({ kind: "failure", ...failureFacts(thrown) }),
  };
}

/** Time in which the parent passes a signal to the whole group on. */
const passingMs = 1_000;

/** Terminals and init systems signal the whole group: the copy would count as a second request. */
function ignoreOwnSignals(afterwards: (signal: PassedSignal) => void): void {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(name, () => void setTimeout(() => afterwards(name), passingMs).unref());
  }
}

/** Otherwise the open channel keeps an idle process alive. */
export function disconnectFromParent(): void {
  process.removeAllListeners("disconnect");
  if (process.connected) process.disconnect?.();
}
