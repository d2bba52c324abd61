import { chmodSync, rmSync } from "node:fs";

interface UnixServerOptions {
  readonly path: string;
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Whether an answer may take, or be silent for, any time. */
  readonly isUntimed: boolean;
}

/** Serves HTTP on a Unix socket that only this user may open. Throws when it cannot listen. */
export function serveUnix({ path, fetch, isUntimed }: UnixServerOptions): Bun.Server<undefined> {
  // The types have this for ports alone.
  const timing: object = isUntimed ? { idleTimeout: 0 } : {};
  rmSync(path, { force: true });
  const server = Bun.serve({
    unix: path,
    development: false,
    ...timing,
    fetch,
    error: () => new Response(undefined, { status: 500 }),
  });
  chmodSync(path, 0o600);
  return server;
}
