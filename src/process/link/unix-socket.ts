import { chmodSync, rmSync } from "node:fs";
import type { ByteChannel } from "./outbox.ts";

/** The events of a connected socket, for its link. */
export interface ChannelEvents {
  received(bytes: Uint8Array): void;
  drained(): void;
  ended(): void;
}

export interface SocketListener {
  stop(): void;
}

interface SocketState {
  events: ChannelEvents;
}

/** Longest path of a socket on macOS, in bytes. On Linux the runtime accepts any length. */
const longestPath = 103;

/**
 * Accepts connections at a path that only this user may open. Replaces a socket left behind. Throws
 * an error that says what to do.
 */
export function listenAtSocket(
  path: string,
  onConnected: (channel: ByteChannel) => ChannelEvents,
): SocketListener {
  rmSync(path, { force: true });
  const server = openServer(path, onConnected);
  chmodSync(path, 0o600);
  return {
    stop() {
      server.stop(true);
      rmSync(path, { force: true });
    },
  };
}

function openServer(path: string, onConnected: (channel: ByteChannel) => ChannelEvents) {
  try {
    return Bun.listen<SocketState>({
      unix: path,
      socket: {
        open: (socket) => {
          socket.data = { events: onConnected(channelOf(socket)) };
        },
        ...handlers,
      },
    });
  } catch (cause) {
    const isLong = Buffer.byteLength(path) > longestPath;
    const advice = isLong ? " (its path may be too long here: use a shorter data_dir)" : "";
    throw new Error(`the processes of the gateway cannot communicate over ${path}${advice}`, {
      cause,
    });
  }
}

/** Rejects when nobody listens at the path. */
export async function connectToSocket(
  path: string,
  onConnected: (channel: ByteChannel) => ChannelEvents,
): Promise<void> {
  await Bun.connect<SocketState>({
    unix: path,
    socket: {
      open: (socket) => {
        socket.data = { events: onConnected(channelOf(socket)) };
      },
      ...handlers,
    },
  });
}

const handlers = {
  data: (socket: Bun.Socket<SocketState>, bytes: Uint8Array) => socket.data.events.received(bytes),
  drain: (socket: Bun.Socket<SocketState>) => socket.data.events.drained(),
  close: (socket: Bun.Socket<SocketState>) => socket.data?.events.ended(),
  error: (socket: Bun.Socket<SocketState>) => socket.data?.events.ended(),
};

function channelOf(socket: Bun.Socket<SocketState>): ByteChannel {
  return {
    write: (bytes) => Math.max(0, socket.write(bytes)),
    close: () => socket.end(),
  };
}
