import type { Socket, TLSOptions } from "bun";

/** One connection of a client, as a server that does what it likes sees it. */
export class RawPeer {
  readonly #socket: Socket<RawPeer>;
  /** Requests that came whole. */
  readonly requests: string[] = [];
  received = "";
  /** The order in which it was accepted, from 0. */
  readonly index: number;
  #closed = Promise.withResolvers<void>();
  isClosed = false;
  #pending: Buffer = Buffer.alloc(0);

  constructor(socket: Socket<RawPeer>, index: number) {
    this.#socket = socket;
    this.index = index;
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Bytes that the other side has not taken. */
  get waitingBytes(): number {
    return this.#pending.length;
  }

  write(bytes: string | Uint8Array): void {
    const all = Buffer.concat([this.#pending, Buffer.from(bytes as Uint8Array)]);
    this.#pending = all;
    this.flush();
  }

  flush(): void {
    if (this.#pending.length === 0) return;
    const written = this.#socket.write(this.#pending);
    if (written > 0) this.#pending = this.#pending.subarray(written);
  }

  /** Writes each part at its own time. */
  async writeSlowly(parts: readonly (string | Uint8Array)[]): Promise<void> {
    for (const part of parts) {
      this.write(part);
      await Bun.sleep(1);
    }
  }

  end(): void {
    this.#socket.end();
  }

  reset(): void {
    this.#socket.terminate();
  }

  stopReading(): void {
    this.#socket.pause();
  }

  close(): void {
    this.isClosed = true;
    this.#closed.resolve();
  }
}

export interface RawServer extends Disposable {
  readonly port: number;
  readonly url: string;
  readonly peers: readonly RawPeer[];
}

export interface RawServerOptions {
  readonly tls?: TLSOptions;
  /** Called for each request that came whole. */
  readonly onRequest?: (peer: RawPeer, request: string) => void;
  /** Called for all bytes, before requests are looked for. */
  readonly onBytes?: (peer: RawPeer, bytes: Buffer) => void;
  readonly onOpen?: (peer: RawPeer) => void;
}

/** A server that knows nothing of HTTP but where a request ends. */
export function rawServer({ tls, onRequest, onBytes, onOpen }: RawServerOptions): RawServer {
  const peers: RawPeer[] = [];
  const listener = Bun.listen<RawPeer>({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls !== undefined && { tls }),
    socket: {
      open(socket) {
        socket.data = new RawPeer(socket, peers.length);
        peers.push(socket.data);
        onOpen?.(socket.data);
      },
      data(socket, bytes) {
        const peer = socket.data;
        onBytes?.(peer, bytes);
        peer.received += bytes.toString("latin1");
        for (;;) {
          const request = takeRequest(peer);
          if (request === undefined) return;
          peer.requests.push(request);
          onRequest?.(peer, request);
        }
      },
      drain: ({ data }) => data.flush(),
      close: ({ data }) => data?.close(),
      error: () => undefined,
    },
  });
  return {
    port: listener.port,
    url: `${tls === undefined ? "http" : "https"}://localhost:${listener.port}`,
    peers,
    [Symbol.dispose]: () => listener.stop(true),
  };
}

function takeRequest(peer: RawPeer): string | undefined {
  const headEnd = peer.received.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(peer.received.slice(0, headEnd + 2))?.[1];
  const end = headEnd + 4 + Number(length ?? 0);
  if (peer.received.length < end) return undefined;
  const request = peer.received.slice(0, end);
  peer.received = peer.received.slice(end);
  return request;
}
