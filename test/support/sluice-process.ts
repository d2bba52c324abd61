import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface FinishedCommand {
  readonly exitCode: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs `sluice ...` in a process of its own and waits for its end. */
export async function runSluice(
  commandLine: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<FinishedCommand> {
  const child = spawnSluice(commandLine, env);
  const [output, errors, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, output, errors };
}

/** A gateway in a process of its own, reachable once this resolves. */
export interface ServingProcess extends AsyncDisposable {
  /** The target of signals: the supervisor, unless it runs `--unsupervised`. */
  readonly pid: number;
  /** The serving process: the current worker, or the process itself. */
  readonly workerPid: number;
  readonly dataUrl: string;
  readonly adminUrl: string;
  /** Everything printed so far, standard error included. */
  text(): string;
  signal(name: NodeJS.Signals): void;
  readonly exited: Promise<number>;
}

export async function startServing(
  commandLine: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ServingProcess> {
  const child = spawnSluice(["serve", ...commandLine], env);
  let text = "";
  let isListening = false;
  const listening = Promise.withResolvers<RegExpExecArray>();
  const collect = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      // The log of a long run is too long to search at each of its lines.
      if (isListening) continue;
      const found = /listening data=(\S+) admin=(\S+)/.exec(text);
      if (found === null) continue;
      isListening = true;
      listening.resolve(found);
    }
  };
  const collecting = Promise.all([collect(child.stdout), collect(child.stderr)]);
  collecting.then(
    () => listening.reject(new Error(`serve ended early:\n${text}`)),
    (error: unknown) => listening.reject(error),
  );
  const [, dataUrl = "", adminUrl = ""] = await listening.promise;
  return {
    pid: child.pid,
    get workerPid() {
      return childOf(child.pid) ?? child.pid;
    },
    dataUrl,
    adminUrl,
    text: () => text,
    signal: (name) => child.kill(name),
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      // Ends with the worker, which holds the other ends of the streams.
      await collecting;
    },
  };
}

/** The child that was started first: a gateway's worker. Undefined without any. */
export function childOf(pid: number): number | undefined {
  return childrenOf(pid)[0];
}

/** In the order in which they were started. */
export function childrenOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").map(Number);
}

function spawnSluice(commandLine: readonly string[], env: Readonly<Record<string, string>>) {
  return Bun.spawn([process.execPath, `${root}src/main.ts`, ...commandLine], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
  });
}
