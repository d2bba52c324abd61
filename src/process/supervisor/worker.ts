import {
  isWorkerMessage,
  type PassedSignal,
  type SupervisorMessage,
  type WorkerMessage,
} from "./messages.ts";

/** What a worker said of the exception that ended it. */
export type WorkerFailure = Extract<WorkerMessage, { kind: "failure" }>;

/** A process that serves. */
export interface Worker {
  readonly pid: number;
  /** Resolves when it has ended; what it said before is told by then. */
  readonly ended: Promise<WorkerEnd>;
  /** Lets it serve, with these arguments behind its own. Does nothing once it has ended. */
  begin(addresses: readonly string[]): void;
  /** Likewise. */
  pass(signal: PassedSignal): void;
  /** Ends it without asking. */
  kill(): void;
}

export interface WorkerEnd {
  /** As a shell tells it: 128 and the signal's number when one ended it. */
  readonly exitCode: number;
  readonly signal: string | undefined;
  readonly peakResidentBytes: number | undefined;
}

export interface WorkerProgram {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const lastWordsMs = 100;

/** Starts a worker with this process's own standard streams. It waits until it is told to begin. */
export function startWorker(
  { command, environment }: WorkerProgram,
  onMessage: (message: WorkerMessage) => void,
): Worker {
  const silenced = Promise.withResolvers<void>();
  const child = Bun.spawn([...command], {
    stdio: ["inherit", "inherit", "inherit"],
    env: environment,
    // A group of its own: what a terminal sends to its group goes to this process, which passes it on.
    detached: true,
    serialization: "json",
    ipc(value: unknown) {
      if (isWorkerMessage(value)) onMessage(value);
    },
    onDisconnect: () => silenced.resolve(),
  });
  const send = (message: SupervisorMessage): void => {
    try {
      child.send(message);
    } catch {
      // It has ended, or is about to: its end will be seen.
    }
  };
  return {
    pid: child.pid,
    ended: child.exited.then(async (exitCode) => {
      // Its last words may still be in the channel, which what it started may hold open.
      await Promise.race([silenced.promise, Bun.sleep(lastWordsMs)]);
      return {
        exitCode,
        signal: child.signalCode === null ? undefined : String(child.signalCode),
        peakResidentBytes: child.resourceUsage()?.maxRSS,
      };
    }),
    begin: (addresses) => send({ kind: "begin", addresses }),
    pass: (name) => send({ kind: "signal", name }),
    kill: () => child.kill("SIGKILL"),
  };
}
