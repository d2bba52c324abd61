import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { isRunning } from "../../domain/system-files.ts";
import { serveUnix } from "../unix-server.ts";

/** What a process tells the others of its machine, by path. Undefined: not found. */
export type SiblingPages = Readonly<Record<string, (query: URLSearchParams) => unknown>>;

export interface SiblingPlace {
  readonly dataDir: string;
  readonly number: number;
}

/** Longest wait for a sibling, which may hang. */
const answerTimeoutMs = 2_000;
/** Longest path of a socket on macOS, in bytes. On Linux the runtime accepts any length. */
const longestPath = 103;

/** Two processes have one number while one replaces the other. */
const nameOf = ({ number }: SiblingPlace): string => `${number}-${process.pid}.sock`;
const folderOf = (dataDir: string): string => join(dataDir, "processes");

/** Where a process takes calls of its control thread. Siblings do not ask there. */
export function callsSocketOf(place: SiblingPlace): string {
  return join(folderOf(place.dataDir), nameOf(place).replace(/sock$/, "calls"));
}

/**
 * Serves values to the other gateway processes of the machine, over HTTP on a Unix socket that only
 * this user may open. JSON would lose what is undefined or infinite. Throws an error that says what to do.
 */
export function serveSiblings(place: SiblingPlace, pages: SiblingPages): Disposable {
  const folder = folderOf(place.dataDir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, nameOf(place));
  const fetch = async ({ url }: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(url);
    const page = Object.hasOwn(pages, pathname) ? pages[pathname] : undefined;
    const answer = await page?.(searchParams);
    if (answer === undefined) return new Response(undefined, { status: 404 });
    return new Response(serialize(answer));
  };
  try {
    const server = serveUnix({ path, isUntimed: false, fetch });
    return {
      [Symbol.dispose]() {
        void server.stop(true);
        rmSync(path, { force: true });
      },
    };
  } catch (cause) {
    const isLong = Buffer.byteLength(path) > longestPath;
    const advice = isLong ? " (its path may be too long here: use a shorter data_dir)" : "";
    const what = `the processes of the gateway cannot communicate over ${path}${advice}`;
    throw new Error(what, { cause });
  }
}

/**
 * Asks all other gateway processes of the machine. Those that do not answer, or have nothing at the
 * path, are left out.
 */
export async function askSiblings(place: SiblingPlace, path: string): Promise<readonly unknown[]> {
  const folder = folderOf(place.dataDir);
  for (const name of namesIn(folder)) {
    // Its process was killed; the next one has sockets of its own.
    const [, pid] = /(\d+)\.(?:sock|calls)$/.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true });
  }
  const others = namesIn(folder).filter((name) => name.endsWith(".sock") && name !== nameOf(place));
  const answers = await Promise.all(others.map((name) => ask(join(folder, name), path)));
  return answers.filter((answer) => answer !== undefined);
}

async function ask(socket: string, path: string): Promise<unknown> {
  try {
    const signal = AbortSignal.timeout(answerTimeoutMs);
    const response = await fetch(`http://process${path}`, { unix: socket, signal });
    return response.ok ? deserialize(await response.bytes()) : undefined;
  } catch {
    return undefined;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
