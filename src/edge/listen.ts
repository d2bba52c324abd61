import { addressUrl } from "../domain/network.ts";
import { type HandleSent, segmentRoutes, type SentPath } from "./dispatch/request-target.ts";
import { findListeningSocket } from "./listening-socket.ts";

/**
 * Whether other processes listen at the same address: none may (`alone`); none may yet, but others
 * will (`first`); others do or did (`another`), or this one replaces one of them (`successor`) and
 * gets all new connections until that one has stopped listening.
 */
export type PortUse = "alone" | "first" | "another" | "successor";

export interface ListenOptions {
  readonly hostname: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** From an answer to the last header of the next request. The runtime bounds the first. */
  readonly idleTimeoutMs: number;
  /** Default: `alone`. */
  readonly portUse?: PortUse | undefined;
  /** Plain paths that get most of the requests. */
  readonly paths?: readonly string[];
  /**
   * `sent` has the segments of the path as it was sent, percent-decoded; `request.url` is normalised by
   * the runtime. Undefined for a path that is empty, has an empty segment, or has too many
   * segments.
   */
  handle(
    request: Request,
    connections: Connections,
    sent: SentPath | undefined,
  ): Response | Promise<Response>;
  /** For failures outside `handle`, which answers its own. */
  onError(error: unknown): Response;
}

export interface Connections {
  /** Value of the `keep-alive` header: how long an idle connection may be reused. */
  readonly keepAliveHint: string;
  /** Of the connection: if never resumed, it stays open for ever when it is idle. */
  pauseIdleTimer(request: Request): void;
  resumeIdleTimer(request: Request): void;
  /** As long as the runtime allows, about four minutes. */
  extendIdleTimer(request: Request): void;
  /** Closes the connection of a truncated answer within seconds; false if that is not possible. */
  cutSoon(request: Request): boolean;
  /** Undefined once the peer has disconnected. */
  peerAddress(request: Request): string | undefined;
}

export type Listener = ReturnType<typeof listen>;

/** The runtime checks its timers every four seconds, and fires up to four seconds early. */
const timerStepSeconds = 4;
/** The longest idle timeout that the runtime accepts. */
const longestTimerSeconds = 255;
/** Prevents callers from reusing a connection at the moment it is closed here. */
const hintMarginSeconds = 5;

/** The only user of `Bun.serve`. */
export function listen(options: ListenOptions) {
  const keptSeconds = Math.ceil(options.idleTimeoutMs / 1000);
  const idleSeconds = Math.min(longestTimerSeconds, keptSeconds + timerStepSeconds);
  const connections: Connections = {
    keepAliveHint: `timeout=${Math.max(1, keptSeconds - hintMarginSeconds)}`,
    pauseIdleTimer: (request) => server.timeout(request, 0),
    resumeIdleTimer: (request) => server.timeout(request, idleSeconds),
    extendIdleTimer: (request) => server.timeout(request, longestTimerSeconds),
    cutSoon(request) {
      server.timeout(request, 1);
      return true;
    },
    peerAddress: (request) => server.requestIP(request)?.address,
  };
  const handle: HandleSent = (request, sent) => options.handle(request, connections, sent);
  const { hostname, port, portUse = "alone" } = options;
  if (portUse === "first") refuseTaken(options);
  const server = explained(options, () =>
    Bun.serve({
      hostname,
      port,
      idleTimeout: idleSeconds,
      // The runtime's own 413 has no body; `read-body` bounds bodies and names the limit.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      // The runtime shares ports by default; a second gateway must fail instead.
      reusePort: portUse !== "alone",
      fetch: (request) => handle(request, undefined),
      routes: segmentRoutes(options.paths ?? [], handle),
      error: (error) => options.onError(error),
    }),
  );
  const ownPort = server.port ?? port;
  const socket = portUse === "alone" ? undefined : findListeningSocket(ownPort);
  if (portUse === "successor") socket?.takeAll();
  return {
    /** Without a trailing slash. */
    url: addressUrl({ hostname, port: ownPort }),
    get pendingRequests(): number {
      return server.pendingRequests;
    },
    /** Open connections; undefined where the system does not report them. */
    get connections(): number | undefined {
      return socket?.countConnections();
    },
    /**
     * Stops listening while a successor listens at the same address, without losing connections that
     * are being opened. Where the system does not support this, it continues to listen.
     */
    async retire(settleMs: number): Promise<void> {
      // The system assigns a connection to a listener at its first packet.
      await Bun.sleep(settleMs);
      socket?.close();
    },
    /** Closes every connection at once. */
    cut: () => server.stop(true),
  };
}

/** Throws if any process listens at the address, even one that would share it. */
export function refuseTaken(address: Pick<ListenOptions, "hostname" | "port">): void {
  if (address.port === 0) return;
  explained(address, () => {
    void Bun.serve({ ...address, reusePort: false, fetch: () => new Response() }).stop(true);
  });
}

/** Adds the address, which the runtime's own error lacks. */
function explained<Server>(
  address: Pick<ListenOptions, "hostname" | "port">,
  start: () => Server,
): Server {
  try {
    return start();
  } catch (error) {
    throw new Error(`cannot listen at ${addressUrl(address)}`, { cause: error });
  }
}
