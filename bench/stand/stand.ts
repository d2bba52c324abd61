import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNginx } from "./nginx.ts";
import type { PeerDescription } from "./peer-description.ts";
import { startPeer } from "./peer.ts";
import { startSluice, type SluiceGateway, type SluiceKind } from "./sluice.ts";
import { startUpstream } from "./upstream.ts";

/** The target of a load. */
export interface Destination {
  readonly port: number;
  /** Besides those of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** How the gateway must be asked otherwise than by OpenAI's API. */
  readonly changes?: RequestChanges;
}

export interface RequestChanges {
  /** Default: that of OpenAI's API. */
  readonly chatPath?: string | undefined;
  /** Fields of the body; null: left out. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** A program between the load and the upstream, whose cost is measured. */
export interface Gateway extends Destination, AsyncDisposable {
  readonly name: string;
  /** The processes whose cost is measured: of nginx the one that serves, of others all. */
  readonly pids: () => readonly number[];
  /** Calls for so long compile its code and fill its caches; default: as the plan says. */
  readonly warmUpMs?: number;
}

/** The programs of a run: gateways before one upstream, each in its own processes. */
export interface Stand extends AsyncDisposable {
  readonly folder: string;
  readonly direct: Destination;
  readonly nginx: Gateway;
  readonly sluice: Gateway;
  /** Further gateways to compare with. */
  readonly peers: readonly Gateway[];
  /** Starts another, new gateway. */
  startFreshSluice(kind?: SluiceKind): Promise<SluiceGateway>;
}

export interface StandOptions {
  readonly profileFolder: string | undefined;
  readonly peers: readonly PeerDescription[];
  /** Where the peers are installed. */
  readonly installedFolder: string;
}

export async function startStand(wanted: StandOptions): Promise<Stand> {
  await using started = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  started.defer(() => rmSync(folder, { recursive: true, force: true }));
  const upstream = started.use(await startUpstream());
  const nginx = started.use(await startNginx(folder, upstream.port));
  const { profileFolder, installedFolder } = wanted;
  const options = { folder, upstreamPort: upstream.port };
  const sluice = started.use(await startSluice({ ...options, profileFolder }));
  const peers: Gateway[] = [];
  for (const description of wanted.peers) {
    peers.push(started.use(await startPeer({ ...options, description, installedFolder })));
  }
  const running = started.move();
  return {
    folder,
    direct: { port: upstream.port, headers: {} },
    nginx,
    sluice,
    peers,
    startFreshSluice: (kind) => startSluice({ ...options, ...kind, profileFolder: undefined }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
