import type { Connections } from "./connections.ts";

export interface ListenOptions {
  readonly hostname: string;
  /** 0 takes a free port. */
  readonly port: number;
  /**
   * How long a connection is kept from one answer to the next request's last header. The first
   * request's headers have 8 to 12 s, a bound of the runtime's own.
   */
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

/** The runtime looks at its timers every four seconds, and is up to as much too early. */
const timerStepSeconds = 4;
/** The most that the runtime takes. */
const longestTimerSeconds = 255;
/** A caller must not take a connection just when it is closed here. */
const hintMarginSeconds = 5;

/** The only user of `Bun.serve`. */
export function listen(options: ListenOptions): Listener {
  const keptSeconds = Math.ceil(options.idleTimeoutMs / 1000);
  const idleSeconds = Math.min(longestTimerSeconds, keptSeconds + timerStepSeconds);
  const connections: Connections = {
    keepAliveHint: `timeout=${Math.max(1, keptSeconds - hintMarginSeconds)}`,
    pauseIdleTimer: (request) => server.timeout(request, 0),
    resumeIdleTimer: (request) => server.timeout(request, idleSeconds),
    cutSoon: (request) => server.timeout(request, 1),
    sentSegments: segmentsOf,
    peerAddress: (request) => server.requestIP(request)?.address,
  };
  const handle = (request: Request): Response | Promise<Response> =>
    options.handle(request, connections);
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
      fetch: handle,
      routes: segmentRoutes(handle),
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

/** One more than any path that is served has. */
const mostSegments = 12;

type Handle = (request: Request) => Response | Promise<Response>;

/**
 * The runtime matches routes with the path as it was sent, and normalises it only for the address of
 * the request. So a route for each number of segments, with and without a slash behind, tells what
 * they were. The names of the parameters are in the order of the segments.
 */
function segmentRoutes(handle: Handle): Record<string, Handle> {
  const routes: Record<string, Handle> = {};
  let path = "";
  for (let count = 1; count <= mostSegments; count += 1) {
    path += `/:s${count}`;
    routes[path] = handle;
    routes[`${path}/`] = handle;
  }
  return routes;
}

function segmentsOf(request: Request): readonly string[] | undefined {
  if (!("params" in request) || typeof request.params !== "object") return undefined;
  const segments = Object.values(request.params ?? {}).map(String);
  return segments.length === 0 ? undefined : segments;
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
