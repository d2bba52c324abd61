import {
  isChildMessage,
  type Beginning,
  type PassedSignal,
  type SupervisorMessage,
  type ChildMessage,
} from "./messages.ts";
import { runtimeSettings } from "./runtime-settings.ts";

/** What a worker reported about the exception that ended it. */
export type WorkerFailure = Extract<ChildMessage, { kind: "failure" }>;

/** A process that serves. */
export interface Worker {
  readonly pid: number;
  /** Resolves when it has ended, after its last message. */
  readonly ended: Promise<WorkerEnd>;
  /** Lets it begin. Does nothing once it has ended. */
  begin(beginning: Beginning): void;
  /** Tells it about the process that it replaces, or that replaces it. */
  tell(what: "replaced" | "take-over" | "ping"): void;
  /** Sends a signal. Does nothing once it has ended. */
  pass(signal: PassedSignal): void;
  /** Kills it. */
  kill(): void;
}

export interface WorkerEnd {
  /** As in a shell: 128 plus the number of the signal that ended it. */
  readonly exitCode: number;
  readonly signal: string | undefined;
  readonly peakResidentBytes: number | undefined;
}

export interface WorkerProgram {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const lastMessageMs = 100;

/** Starts a worker with this process's standard streams. It waits for `begin`. */
export function startWorker(
  { command, environment }: WorkerProgram,
  onMessage: (message: ChildMessage) => void,
): Worker {
  const disconnected = Promise.withResolvers<void>();
  const child = Bun.spawn([...command], {
    stdio: ["inherit", "inherit", "inherit"],
    env: { ...runtimeSettings, ...environment },
    // Its own process group, so that a terminal's signals reach only this process, which forwards
    // them.
    detached: true,
    serialization: "json",
    ipc(value: unknown) {
      if (isChildMessage(value)) onMessage(value);
    },
    onDisconnect: () => disconnected.resolve(),
  });
  const send = (message: SupervisorMessage): void => {
    try {
      child.send(message);
    } catch {
      // It has ended or is about to, which `ended` reports.
    }
  };
  return {
    pid: child.pid,
    ended: child.exited.then(async (exitCode) => {
      // Its last message may still be in the channel, which its own children may keep open.
      await Promise.race([disconnected.promise, Bun.sleep(lastMessageMs)]);
      return {
        exitCode,
        signal: child.signalCode === null ? undefined : String(child.signalCode),
        peakResidentBytes: child.resourceUsage()?.maxRSS,
      };
    }),
    begin: (beginning) => send({ kind: "begin", ...beginning }),
    tell: (kind) => send({ kind }),
    pass: (name) => send({ kind: "signal", name }),
    kill: () => child.kill("SIGKILL"),
  };
}
