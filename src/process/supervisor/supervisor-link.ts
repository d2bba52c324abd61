import { failureFacts } from "./failure-facts.ts";
import {
  isSupervisorMessage,
  type PassedSignal,
  type WorkerMessage,
  type WorkerSettings,
} from "./messages.ts";

/** What a command may tell the process above it, when there is one. */
export interface SupervisorLink {
  /** Resolves when this process is to serve, with the arguments behind its own. */
  readonly begun: Promise<readonly string[]>;
  tellSettings(settings: WorkerSettings): void;
  /** Whoever tells this must end. */
  askForFetchLimit(fetchLimit: number): void;
  /** The worker serves. */
  tellStarted(addresses: readonly string[]): void;
  /** An exception that nobody caught ends the worker. */
  tellFailure(thrown: unknown): void;
}

export interface LinkOptions {
  readonly onSignal: (signal: PassedSignal) => void;
  /** Ends this process, as a failure. */
  readonly endNow: () => void;
}

/**
 * Ties this process to its supervisor: takes signals from it alone, and ends when it is gone. Must
 * be called before anything is awaited, or a signal of the first moment is lost.
 */
export function connectToSupervisor({ onSignal, endNow }: LinkOptions): SupervisorLink {
  const begun = Promise.withResolvers<readonly string[]>();
  process.on("message", (value: unknown) => {
    if (!isSupervisorMessage(value)) return;
    if (value.kind === "begin") begun.resolve(value.addresses);
    else onSignal(value.name);
  });
  // What is under way is in the spool, and a second gateway must not run unseen.
  process.on("disconnect", endNow);
  ignoreOwnSignals();
  const tell = (message: WorkerMessage): void => void process.send?.(message);
  return {
    begun: begun.promise,
    tellSettings: (settings) => tell({ kind: "settings", ...settings }),
    askForFetchLimit: (fetchLimit) => tell({ kind: "again", fetchLimit }),
    tellStarted: (addresses) => tell({ kind: "started", addresses }),
    tellFailure(thrown) {
      const residentBytes = process.memoryUsage.rss();
      tell({ kind: "failure", residentBytes, ...failureFacts(thrown) });
    },
  };
}

/** Terminals and init systems signal the whole group: what comes twice would mean `now`. */
function ignoreOwnSignals(): void {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => undefined);
}

/** The channel keeps a process alive that has nothing to do any more. */
export function disconnectFromSupervisor(): void {
  process.removeAllListeners("disconnect");
  if (process.connected) process.disconnect?.();
}
