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
  program?: readonly string[],
): Promise<FinishedCommand> {
  const child = spawnSluice(commandLine, env, program);
  const [output, errors, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, output, errors };
}

/** A gateway in a process of its own, reachable once this resolves. */
export interface ServingProcess extends AsyncDisposable {
  /** The parent, which is the target of signals. */
  readonly pid: number;
  /** The current first gateway process. */
  readonly processPid: number;
  readonly dataUrl: string;
  readonly adminUrl: string;
  /** Everything printed so far, standard error included. */
  text(): string;
  signal(name: NodeJS.Signals): void;
  /** Ends all its processes at once, as the end of the machine would. */
  kill(): void;
  readonly exited: Promise<number>;
}

export async function startServing(
  commandLine: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program?: readonly string[],
): Promise<ServingProcess> {
  const child = spawnSluice(["serve", ...commandLine], env, program);
  let text = "";
  let isListening = false;
  const listening = Promise.withResolvers<Addresses>();
  const collect = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      // The log of a long run is too long to search at each of its lines.
      if (isListening) continue;
      const found = addressesIn(text);
      if (found === undefined) continue;
      isListening = true;
      listening.resolve(found);
    }
  };
  const collecting = Promise.all([collect(child.stdout), collect(child.stderr)]);
  collecting.then(
    () => listening.reject(new Error(`serve ended early:\n${text}`)),
    (error: unknown) => listening.reject(error),
  );
  const { dataUrl, adminUrl } = await listening.promise;
  return {
    pid: child.pid,
    get processPid() {
      return processOf(child.pid) ?? child.pid;
    },
    dataUrl,
    adminUrl,
    text: () => text,
    signal: (name) => child.kill(name),
    kill() {
      const children = childrenOf(child.pid);
      child.kill("SIGKILL");
      for (const pid of children) killIfAlive(pid);
    },
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      // Ends with the process, which holds the other ends of the streams.
      await collecting;
    },
  };
}

function killIfAlive(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

interface Addresses {
  readonly dataUrl: string;
  readonly adminUrl: string;
}

const announcements = [
  /listening data=(\S+) admin=(\S+)/,
  /^ {2}API {6}(\S+)\/v1\r?\n {2}Admin {4}(\S+)\/admin\//m,
];

/** Where a gateway listens, from its log or the demo's banner; undefined until it has said so. */
export function addressesIn(text: string): Addresses | undefined {
  for (const announcement of announcements) {
    const [, dataUrl, adminUrl] = announcement.exec(text) ?? [];
    if (dataUrl !== undefined && adminUrl !== undefined) return { dataUrl, adminUrl };
  }
  return undefined;
}

/** The first process of a gateway, not one that it replaced. Undefined without one. */
export function processOf(pid: number): number | undefined {
  return childNamed(pid, "sluice-1");
}

/** All processes that have begun to serve or are about to. */
export function processesOf(pid: number): readonly number[] {
  return childrenOf(pid).filter((child) => nameOf(child)?.startsWith("sluice-"));
}

function childNamed(pid: number, name: string): number | undefined {
  return childrenOf(pid).findLast((child) => nameOf(child) === name);
}

/** Undefined when the process has ended. */
function nameOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** In the order in which they were started. */
export function childrenOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").map(Number);
}

/** How `sluice` is run from this checkout. */
export const sluiceProgram: readonly string[] = [process.execPath, `${root}src/main.ts`];

export function spawnSluice(
  commandLine: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program: readonly string[] = sluiceProgram,
) {
  return Bun.spawn([...program, ...commandLine], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
  });
}
