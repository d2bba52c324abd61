import { segmentRoutes, type HandleSent, type SentSegments } from "./dispatch/segment-routes.ts";

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
  /** Plain paths that are asked for most. */
  readonly paths?: readonly string[];
  /**
   * `segments` are those of the path as it was sent, percent-decoded: the address of a `Request` is
   * what the runtime made of it. Undefined for a path that is empty, has an empty segment, or has
   * too many of them.
   */
  handle(
    request: Request,
    connections: Connections,
    segments: SentSegments,
  ): Response | Promise<Response>;
  /** For failures outside of `handle`, which answers everything itself. */
  onError(error: unknown): Response;
}

/** What a listener knows of the connection behind a request. */
export interface Connections {
  /** Value of the `keep-alive` header: for how long an idle connection may be used again. */
  readonly keepAliveHint: string;
  /**
   * The idle timer belongs to the connection, not to the request: what is paused and never resumed
   * keeps an idle connection open for ever.
   */
  pauseIdleTimer(request: Request): void;
  resumeIdleTimer(request: Request): void;
  /** Closes a connection whose answer broke off, within seconds. */
  cutSoon(request: Request): void;
  /** Who is at the other end; undefined once it has left. */
  peerAddress(request: Request): string | undefined;
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
    peerAddress: (request) => server.requestIP(request)?.address,
  };
  const handle: HandleSent = (request, segments) => options.handle(request, connections, segments);
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
      fetch: (request) => handle(request, undefined),
      routes: segmentRoutes(options.paths ?? [], handle),
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
