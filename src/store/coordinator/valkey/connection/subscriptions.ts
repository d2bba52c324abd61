import { ServerLine, type ServerLineOptions } from "./server-line.ts";

type Listener = (message: string) => void;

/** How often the connection is tried: nothing else would show that it is half open. */
const checkMs = 2_000;

/** Listeners of channels, on a connection of their own that is opened with the first one. */
export class Subscriptions {
  readonly #options: Omit<ServerLineOptions, "onChange" | "prepare">;
  readonly #listeners = new Map<string, Set<Listener>>();
  #line: ServerLine | undefined;
  #cancelCheck: () => void = () => undefined;

  constructor(options: Omit<ServerLineOptions, "onChange" | "prepare">) {
    this.#options = options;
  }

  add(channel: string, listener: Listener): () => void {
    const known = this.#listeners.get(channel);
    this.#listeners.set(channel, (known ?? new Set()).add(listener));
    if (known === undefined) this.renew();
    return () => {
      const left = this.#listeners.get(channel);
      left?.delete(listener);
      if (left?.size === 0) this.#listeners.delete(channel);
    };
  }

  /** A new connection: the previous one may be half open, which nothing on it would show. */
  renew(): void {
    this.#cancelCheck();
    this.#line?.close();
    this.#line = undefined;
    if (this.#listeners.size === 0) return;
    this.#line = new ServerLine({
      ...this.#options,
      prepare: (client) => this.#subscribe(client),
      onChange: () => undefined,
    });
    void this.#line.open();
    this.#checkLater();
  }

  close(): void {
    this.#cancelCheck();
    this.#listeners.clear();
    this.#line?.close();
  }

  #checkLater(): void {
    this.#cancelCheck();
    this.#cancelCheck = this.#options.clock.schedule(() => {
      this.#line?.send("PING", []).catch(() => undefined);
      this.#checkLater();
    }, checkMs);
  }

  async #subscribe(client: Bun.RedisClient): Promise<void> {
    for (const channel of this.#listeners.keys()) {
      await client.subscribe(channel, (message) => {
        for (const listener of this.#listeners.get(channel) ?? []) listener(message);
      });
    }
  }
}
