import { closeSync, openSync, readFileSync } from "node:fs";

export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** The end of its standard error. */
  complaints(): string;
  readonly exited: Promise<number>;
}

export interface ChildOptions {
  readonly command: readonly string[];
  readonly logPath: string;
  /** Where it runs; default: where this program does. */
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Longest wait for a program to end by itself before it is killed. */
const timeoutMs = 5_000;

/** Starts a program whose output goes to a file. It is ended at the end of the run. */
export function startChild({ command, logPath, folder, env }: ChildOptions): Child {
  const log = openSync(logPath, "a");
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: log,
    stderr: log,
    env: env ?? process.env,
    ...(folder !== undefined && { cwd: folder }),
  });
  closeSync(log);
  return {
    pid: child.pid,
    exited: child.exited,
    complaints: () => readFileSync(logPath, "utf8").slice(-2_000),
    [Symbol.asyncDispose]: () => endChild(child),
  };
}

/** Asks the program to end, then kills it. */
export async function endChild(child: Bun.Subprocess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  await child.exited;
  clearTimeout(timer);
}
