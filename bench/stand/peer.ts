import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startChild, type Child } from "./child.ts";
import { fillIn, type PeerDescription, type Places } from "./peer-description.ts";
import { nameOf, processesOf } from "./process-usage.ts";
import { freePort, untilReachable } from "./reachable.ts";
import type { Gateway } from "./stand.ts";

export interface PeerOptions {
  readonly description: PeerDescription;
  readonly folder: string;
  readonly upstreamPort: number;
  /** Where the peers are installed. */
  readonly installedFolder: string;
}

const pauseMs = 100;

/** Any gateway, as its description says, in its own folder. */
export async function startPeer(options: PeerOptions): Promise<Gateway> {
  const { description, upstreamPort } = options;
  const folder = join(options.folder, description.name);
  const places: Places = {
    port: String(description.port ?? freePort()),
    upstream: `127.0.0.1:${upstreamPort}`,
    upstream_port: String(upstreamPort),
    folder,
    installed: options.installedFolder,
  };
  writeFiles(description, places);
  const child = startProgram(description, places);
  const end = (): Promise<void> => endTree(child);
  try {
    return {
      name: description.name,
      port: await readyPort({ description, places, child }),
      headers: filledIn(description.headers, places),
      changes: { chatPath: description.chat_path, body: description.body },
      pids: () => processesOf(child.pid),
      warmUpMs: description.warm_up_seconds * 1_000,
      [Symbol.asyncDispose]: end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

function writeFiles({ files }: PeerDescription, places: Places): void {
  mkdirSync(places.folder);
  for (const [name, content] of Object.entries(files)) {
    const path = join(places.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, fillIn(content, places));
  }
}

function startProgram(description: PeerDescription, places: Places): Child {
  const { name, install, environment } = description;
  try {
    return startChild({
      command: description.command.map((part) => fillIn(part, places)),
      logPath: join(places.folder, "output.log"),
      folder: places.folder,
      env: { ...process.env, ...filledIn(environment, places) },
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${name} can't be started: ${reason}. To install it:\n${fillIn(install, places)}`,
    );
  }
}

/** Those that the program started may outlive it. */
async function endTree(child: Child): Promise<void> {
  const [, ...descendants] = processesOf(child.pid);
  await child[Symbol.asyncDispose]();
  for (const pid of descendants) if (nameOf(pid) !== "") process.kill(pid, "SIGKILL");
}

interface Starting {
  readonly description: PeerDescription;
  readonly places: Places;
  readonly child: Child;
}

/** Its port, once it takes calls. */
async function readyPort({ description, places, child }: Starting): Promise<number> {
  const { name, port_file: portFile, ready_path: readyPath } = description;
  const limitMs = description.start_limit_seconds * 1_000;
  const deadline = performance.now() + limitMs;
  let port = Number(places.port);
  let isReady = false;
  if (portFile !== undefined) port = await portIn(fillIn(portFile, places), deadline);
  await untilReachable(port, child, limitMs);
  while (!isReady && readyPath !== undefined) {
    isReady = await answers(`http://127.0.0.1:${port}${readyPath}`);
    if (performance.now() > deadline) {
      throw new Error(`${name} is not ready:\n${child.complaints()}`);
    }
    await Bun.sleep(pauseMs);
  }
  return port;
}

async function portIn(path: string, deadline: number): Promise<number> {
  while (!existsSync(path)) {
    if (performance.now() > deadline) throw new Error(`there is no port in ${path}`);
    await Bun.sleep(pauseMs);
  }
  await Bun.sleep(pauseMs);
  return Number(readFileSync(path, "utf8"));
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(1_000) })).ok;
  } catch {
    return false;
  }
}

function filledIn(
  values: Readonly<Record<string, string>>,
  places: Places,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, fillIn(value, places)]),
  );
}
