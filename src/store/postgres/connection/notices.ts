import type { Client } from "pg";
import type { Clock } from "../../../domain/clock.ts";
import type { KeysWatch, KeysWatcher } from "../../repositories/process-store.ts";
import { createClient, type PoolOptions } from "./pool.ts";

const keysChannel = "sluice_keys";

/** Tells all processes the newest epoch of keys; those that have it do nothing. */
export const tellEpoch = `SELECT pg_notify('${keysChannel}', value::text) FROM epochs WHERE name = 'keys'`;
const reconnectMs = 500;
/** A connection that has broken without a word is found out by a statement. */
const checkIntervalMs = 5_000;

export interface NoticeOptions {
  readonly connection: PoolOptions;
  readonly clock: Pick<Clock, "schedule">;
  readonly watcher: KeysWatcher;
}

/** Listens on a connection of its own, which it replaces when it breaks. */
export class NoticeListener implements KeysWatch {
  readonly #options: NoticeOptions;
  #client: Client | undefined;
  #isLost = false;
  #isStopped = false;
  #cancel = (): void => undefined;

  constructor(options: NoticeOptions) {
    this.#options = options;
    void this.#connect();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    this.#drop();
  }

  async #connect(): Promise<void> {
    const { connection, watcher } = this.#options;
    try {
      const client = await createClient(connection);
      if (this.#isStopped) return;
      this.#client = client;
      client.on("notification", ({ payload }) => watcher.keysChanged(Number(payload)));
      client.on("end", () => this.#lost(client, new Error("the server closed the connection")));
      await client.connect();
      await client.query(`LISTEN ${keysChannel}`);
      if (this.#isLost) watcher.back();
      this.#isLost = false;
      // Nothing was heard until now.
      watcher.keysChanged(undefined);
      this.#checkLater(client);
    } catch (error) {
      this.#lost(this.#client, error);
    }
  }

  #checkLater(client: Client): void {
    this.#cancel = this.#options.clock.schedule(() => {
      client.query("SELECT 1").then(
        () => client === this.#client && this.#checkLater(client),
        (error: unknown) => this.#lost(client, error),
      );
    }, checkIntervalMs);
  }

  #lost(client: Client | undefined, error: unknown): void {
    if (this.#isStopped || client !== this.#client) return;
    this.#drop();
    if (!this.#isLost) this.#options.watcher.lost(error);
    this.#isLost = true;
    this.#cancel();
    this.#cancel = this.#options.clock.schedule(() => void this.#connect(), reconnectMs);
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(() => undefined);
  }
}
