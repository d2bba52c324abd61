import type { Connections } from "./connections.ts";

export interface ListenOptions {
  readonly hostname: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Bounds the wait for a request's headers, and how long an idle connection is kept. */
  readonly idleTimeoutMs: number;
  /** Whether other processes may listen at the same address; the system deals out connections. */
  readonly sharesPort?: boolean;
  handle(request: Request, connections: Connections): Response | Promise<Response>;
  /** For failures outside of `handle`, which answers everything itself. */
  onError(error: unknown): Response;
}

export interface Listener {
  /** Without a slash behind. */
  readonly url: string;
  readonly pendingRequests: number;
  /** Cuts every connection. */
  cut(): Promise<void>;
}

/** The only user of `Bun.serve`. */
export function listen(options: ListenOptions): Listener {
  const idleSeconds = Math.min(255, Math.ceil(options.idleTimeoutMs / 1000));
  const connections: Connections = {
    pauseIdleTimer: (request) => server.timeout(request, 0),
    resumeIdleTimer: (request) => server.timeout(request, idleSeconds),
    peerAddress: (request) => server.requestIP(request)?.address,
  };
  const server = explained(options, () =>
    Bun.serve({
      hostname: options.hostname,
      port: options.port,
      idleTimeout: idleSeconds,
      // The runtime's own 413 has no body; `read-body` bounds bodies and says what the limit is.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      // Outside of development the runtime shares ports; a second gateway must be told instead.
      reusePort: options.sharesPort ?? false,
      fetch: (request) => options.handle(request, connections),
      error: (error) => options.onError(error),
    }),
  );
  return {
    url: urlOf(options.hostname, server.port ?? options.port),
    get pendingRequests() {
      return server.pendingRequests;
    },
    cut: () => server.stop(true),
  };
}

/** The runtime does not say which address it could not take. */
function explained<Server>({ hostname, port }: ListenOptions, start: () => Server): Server {
  try {
    return start();
  } catch (error) {
    throw new Error(`cannot listen at ${urlOf(hostname, port)}`, { cause: error });
  }
}

function urlOf(hostname: string, port: number): string {
  return `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
