import type { Socket, SocketHandler } from "bun";

interface RawFront extends Disposable {
  readonly port: number;
  /** Takes a caller's connection over from the HTTP server, which sees it under this port. */
  takeOver(peerPort: number): RawConnection | undefined;
}

/**
 * Listens for callers and relays bytes to and from the HTTP server behind it. It does not parse
 * HTTP: the server takes over the connection of a call that needs a fault below HTTP.
 */
export function startRawFront(options: {
  readonly hostname: string;
  readonly port: number;
  readonly serverPort: number;
}): RawFront {
  const connections = new Map<number, RelayedConnection>();
  const listener = Bun.listen<RelaySide>({
    hostname: options.hostname,
    port: options.port,
    socket: {
      ...relayHandlers,
      open(socket) {
        const connection = new RelayedConnection(socket);
        socket.data = connection.callerSide;
        void connection.connect(options.serverPort, connections);
      },
    },
  });
  return {
    port: listener.port,
    takeOver: (peerPort) => connections.get(peerPort)?.takeOver(),
    [Symbol.dispose]: () => listener.stop(true),
  };
}

/** A caller's connection below HTTP, for faults that an HTTP server cannot produce. */
export interface RawConnection {
  /** Fires when the connection is closed by either side. */
  readonly closed: AbortSignal;
  /** Resolves when there is room for more, or the connection is closed. */
  write(bytes: Uint8Array): Promise<void>;
  /** Closes after everything written has been sent. */
  end(): void;
  /** Closes at once with a TCP reset. */
  reset(): void;
}

/** The event handlers of one of a relay's two sockets. */
interface RelaySide {
  receive(bytes: Uint8Array): void;
  drain(): void;
  close(): void;
}

const relayHandlers: SocketHandler<RelaySide> = {
  data: (socket, bytes) => socket.data.receive(bytes),
  drain: (socket) => socket.data.drain(),
  close: (socket) => socket.data.close(),
  error: (socket) => {
    socket.terminate();
  },
};

type RelaySocket = Socket<RelaySide>;

/** First byte of a TLS handshake; no HTTP request begins with it. */
const tlsHandshake = 0x16;
/** A fatal alert, handshake_failure (RFC 8446, section 6). */
export const tlsAlert = new Uint8Array([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28]);

/** A caller's socket and the socket to the HTTP server that serves it. */
class RelayedConnection {
  readonly #caller: Outlet;
  #server: Outlet | undefined;
  /** What the caller sent before the server was connected. */
  #early: Uint8Array[] = [];
  #isFirstRead = true;
  #isTaken = false;
  readonly #closed = new AbortController();

  constructor(caller: RelaySocket) {
    this.#caller = new Outlet(caller);
  }

  get callerSide(): RelaySide {
    return {
      receive: (bytes) => this.#fromCaller(bytes),
      drain: () => this.#caller.flush(),
      close: () => {
        this.#closed.abort();
        this.#caller.release();
        // A reset, so that the server notices at once that the caller has left.
        if (!this.#isTaken) this.#server?.socket.terminate();
      },
    };
  }

  async connect(serverPort: number, connections: Map<number, RelayedConnection>): Promise<void> {
    let localPort = -1;
    const side: RelaySide = {
      receive: (bytes) => this.#fromServer(bytes),
      drain: () => this.#server?.flush(),
      close: () => {
        if (connections.get(localPort) === this) connections.delete(localPort);
        this.#server?.release();
        if (!this.#isTaken) this.#caller.end();
      },
    };
    const open = (socket: RelaySocket): void => {
      localPort = socket.localPort;
      connections.set(localPort, this);
      this.#server = new Outlet(socket);
      if (this.#closed.signal.aborted) socket.terminate();
      for (const bytes of this.#early.splice(0)) this.#server.send(bytes);
      this.#caller.socket.resume();
    };
    try {
      const socket = { ...relayHandlers, open };
      await Bun.connect({ hostname: "127.0.0.1", port: serverPort, data: side, socket });
    } catch {
      this.#caller.socket.terminate();
    }
  }

  takeOver(): RawConnection {
    this.#isTaken = true;
    this.#server?.socket.terminate();
    const caller = this.#caller;
    return {
      closed: this.#closed.signal,
      write: (bytes) => caller.sendAll(bytes),
      end: () => caller.end(),
      reset: () => caller.socket.terminate(),
    };
  }

  #fromCaller(bytes: Uint8Array): void {
    if (this.#isTaken) return;
    if (this.#isFirstRead && bytes[0] === tlsHandshake) {
      this.#caller.send(tlsAlert);
      this.#caller.end();
      return;
    }
    this.#isFirstRead = false;
    if (this.#server === undefined) {
      this.#early.push(new Uint8Array(bytes));
      this.#caller.socket.pause();
      return;
    }
    this.#server.send(bytes, this.#caller.socket);
  }

  #fromServer(bytes: Uint8Array): void {
    if (!this.#isTaken) this.#caller.send(bytes, this.#server?.socket);
  }
}

/** The sending half of a socket: keeps what the kernel did not accept, and pauses the source. */
class Outlet {
  readonly socket: RelaySocket;
  #kept: Uint8Array[] = [];
  #source: RelaySocket | undefined;
  #isEnding = false;
  #waiting: (() => void)[] = [];

  constructor(socket: RelaySocket) {
    this.socket = socket;
  }

  /** `source` is paused until everything has been sent. */
  send(bytes: Uint8Array, source?: RelaySocket): void {
    const written = this.#kept.length > 0 ? 0 : Math.max(0, this.socket.write(bytes));
    if (written === bytes.length) return;
    // The runtime may reuse the buffer of a read.
    this.#kept.push(new Uint8Array(bytes.subarray(written)));
    if (source === undefined || this.#source === source) return;
    this.#source = source;
    source.pause();
  }

  sendAll(bytes: Uint8Array): Promise<void> {
    this.send(bytes);
    if (this.#kept.length === 0 || this.socket.readyState <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  flush(): void {
    for (let first = this.#kept[0]; first !== undefined; first = this.#kept[0]) {
      const written = Math.max(0, this.socket.write(first));
      if (written < first.length) {
        this.#kept[0] = first.subarray(written);
        return;
      }
      this.#kept.shift();
    }
    this.#source?.resume();
    this.#source = undefined;
    for (const resolve of this.#waiting.splice(0)) resolve();
    if (this.#isEnding) this.socket.end();
  }

  /** Closes once everything has been sent. */
  end(): void {
    this.#isEnding = true;
    if (this.#kept.length === 0) this.socket.end();
  }

  /** Ends all waits, because the socket is closed. */
  release(): void {
    this.#kept = [];
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
