import { failureFacts } from "./failure-facts.ts";
import {
  readSupervisorMessage,
  type PassedSignal,
  type WorkerMessage,
  type WorkerSettings,
} from "./messages.ts";

/** Connects a command to its supervisor, if it has one. */
export interface SupervisorLink {
  /** Resolves to additional arguments once this process may serve. */
  readonly begun: Promise<readonly string[]>;
  tellSettings(settings: WorkerSettings): void;
  /** The caller must then exit. */
  askForFetchLimit(fetchLimit: number): void;
  /** The worker serves. */
  tellStarted(addresses: readonly string[]): void;
  /** An uncaught exception ends the worker. */
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
  const begun = Promise.withResolvers<readonly string[]>();
  process.on("message", (value: unknown) => {
    const message = readSupervisorMessage(value);
    if (message?.kind === "begin") begun.resolve(message.addresses);
    if (message?.kind === "signal") onSignal(message.name);
  });
  // Running calls are in the spool, and an orphaned gateway must not go on unseen.
  process.on("disconnect", endNow);
  ignoreOwnSignals();
  return new Link(begun.promise);
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
