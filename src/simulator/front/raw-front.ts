import {
  RelayedConnection,
  relayHandlers,
  type RawConnection,
  type RelaySide,
} from "./relayed-connection.ts";

export interface RawFront extends Disposable {
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
