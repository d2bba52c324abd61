import { failureFacts } from "./failure-facts.ts";
import {
  readSupervisorMessage,
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
    const message = readSupervisorMessage(value);
    if (message?.kind === "begin") begun.resolve(message.addresses);
    if (message?.kind === "signal") onSignal(message.name);
  });
  // What is under way is in the spool, and a second gateway must not run unseen.
  process.on("disconnect", endNow);
  ignoreOwnSignals();
  return new Link(begun.promise);
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

class Link implements SupervisorLink {
  readonly begun: Promise<readonly string[]>;

  constructor(begun: Promise<readonly string[]>) {
    this.begun = begun;
  }

  tellSettings(settings: WorkerSettings): void {
    this.#tell({ kind: "settings", ...settings });
  }

  askForFetchLimit(fetchLimit: number): void {
    this.#tell({ kind: "again", fetchLimit });
  }

  tellStarted(addresses: readonly string[]): void {
    this.#tell({ kind: "started", addresses });
  }

  tellFailure(thrown: unknown): void {
    const residentBytes = process.memoryUsage.rss();
    this.#tell({ kind: "failure", residentBytes, ...failureFacts(thrown) });
  }

  #tell(message: WorkerMessage): void {
    process.send?.(message);
  }
}
