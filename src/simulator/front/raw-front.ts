import {
  RelayedConnection,
  relayHandlers,
  type RawConnection,
  type RelaySide,
} from "./relayed-connection.ts";

export interface RawFront extends Disposable {
  readonly port: number;
  /** Takes a caller's connection away from the HTTP server, which knows it by its peer's port. */
  takeOver(peerPort: number): RawConnection | undefined;
}

/**
 * Listens where callers connect and relays bytes to and from the HTTP server behind it. It
 * understands nothing of HTTP: the server finds out that a call wants a fault below HTTP, and
 * takes the connection over.
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
