import type { Socket, TCPSocketListener } from "bun";

interface Relay {
  readonly server: Promise<Socket>;
  isHeld: boolean;
}

/** Stands between a client and a server on this machine, and can hold back the server's answers. */
export class HeldAnswers implements Disposable {
  readonly #clients = new Set<Socket<Relay>>();
  /** How to pass on what the server has sent, oldest first. */
  readonly #held: (() => void)[] = [];
  readonly #listener: TCPSocketListener<Relay>;

  constructor(serverPort: number) {
    const answered = (client: Socket<Relay>, chunk: Buffer): void => {
      const copy = Buffer.from(chunk);
      if (client.data.isHeld) this.#held.push(() => void client.write(copy));
      else client.write(copy);
    };
    this.#listener = Bun.listen<Relay>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (client) => {
          const server = Bun.connect({
            hostname: "127.0.0.1",
            port: serverPort,
            socket: {
              data: (_server, chunk) => answered(client, chunk),
              close: () => void client.end(),
            },
          });
          client.data = { server, isHeld: false };
          this.#clients.add(client);
        },
        data(client, chunk) {
          const copy = Buffer.from(chunk);
          void client.data.server.then((server) => server.write(copy));
        },
        close: (client) => {
          this.#clients.delete(client);
          void client.data.server.then((server) => server.end());
        },
      },
    });
  }

  get url(): string {
    return `valkey://127.0.0.1:${this.#listener.port}`;
  }

  /** How many pieces of answers wait. */
  get held(): number {
    return this.#held.length;
  }

  /** The connections of now get no more answers, as if half open. New ones do. */
  hold(): void {
    for (const client of this.#clients) client.data.isHeld = true;
  }

  passOne(): void {
    this.#held.shift()?.();
  }

  /** Passes on everything, also from now on. */
  release(): void {
    for (const client of this.#clients) client.data.isHeld = false;
    for (const pass of this.#held.splice(0)) pass();
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
  }
}
