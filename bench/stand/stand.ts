import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNginx } from "./nginx.ts";
import { startSluice, type SluiceGateway, type SluiceKind } from "./sluice.ts";
import { startUpstream } from "./upstream.ts";

/** The target of a load. */
export interface Destination {
  readonly port: number;
  readonly authorization: string;
}

/** A program between the load and the upstream, whose cost is measured. */
export interface Gateway extends Destination, AsyncDisposable {
  readonly name: "nginx" | "sluice";
  /** The processes whose cost is measured: of nginx the one that serves, of Sluice all. */
  readonly pids: () => readonly number[];
}

/** The programs of a run: two gateways before one upstream, each in its own process. */
export interface Stand extends AsyncDisposable {
  readonly folder: string;
  readonly direct: Destination;
  readonly nginx: Gateway;
  readonly sluice: Gateway;
  /** Starts another, new gateway. */
  startFreshSluice(kind?: SluiceKind): Promise<SluiceGateway>;
}

export interface StandOptions {
  readonly profileFolder: string | undefined;
}

export async function startStand({ profileFolder }: StandOptions): Promise<Stand> {
  await using started = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  started.defer(() => rmSync(folder, { recursive: true, force: true }));
  const upstream = started.use(await startUpstream());
  const nginx = started.use(await startNginx(folder, upstream.port));
  const options = { folder, upstreamPort: upstream.port };
  const sluice = started.use(await startSluice({ ...options, profileFolder }));
  const running = started.move();
  return {
    folder,
    direct: { port: upstream.port, authorization: "Bearer none" },
    nginx,
    sluice,
    startFreshSluice: (kind) => startSluice({ ...options, ...kind, profileFolder: undefined }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
