import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import { effectivePrices } from "../../config/prices/effective-prices.ts";
import type { Clock } from "../../domain/clock.ts";
import type { PriceTable } from "../../domain/money/price.ts";
import { Coalesced } from "../../domain/waiting/coalesced.ts";
import { hasSettledWithin } from "../../domain/waiting/wait.ts";
import type { PriceStore } from "../../store/repositories/price-store.ts";
import type { StorageEvents } from "../../telemetry/events/storage-events.ts";

export interface PriceFeedOptions {
  readonly store: Pick<PriceStore, "publish" | "load">;
  readonly clock: Clock;
  readonly config: () => Config;
  /** The leader publishes, and the first process, which must have its prices before it serves. */
  readonly publishes: () => boolean;
  /** Sends the tables that calls may need to the main thread. */
  readonly tell: (tables: readonly PriceTable[]) => void;
  readonly events: Pick<StorageEvents, "prices" | "pricesPublished">;
}

const lookIntervalMs = 1_000;
/** Longest wait for the database before a configuration is used whose prices are not published. */
const publishWaitMs = 1_000;
/** Calls that arrived so long ago have ended: an answer has no longer deadline. */
const longestCallMs = 24 * 3_600_000;
const dayMs = 86_400_000;

/**
 * Publishes the prices of the configuration as tables in the database, if this process leads, and
 * sends all that calls need to the main thread. A copy on disk is for a start without the database.
 */
export class PriceFeed {
  readonly #options: PriceFeedOptions;
  readonly #running = new Coalesced(() => this.#follow());
  /** Whose prices are published, and for which day: some begin on a later one. */
  #published: { readonly config: Config; readonly day: number } | undefined;
  /** Version of the newest table that was sent; undefined: none was, or those on disk. */
  #version: number | undefined;
  #hasTold = false;
  #isStopped = false;
  #stopTimer = (): void => undefined;

  constructor(options: PriceFeedOptions) {
    this.#options = options;
  }

  /** The main thread has what is known, and looks for changes begin. Never rejects. */
  async start(): Promise<void> {
    await this.follow();
    this.#look();
  }

  /** Resolves when the prices of the current configuration are in use, or after a second. */
  async follow(): Promise<void> {
    const running = this.#running.run().catch(() => undefined);
    await hasSettledWithin(running, publishWaitMs, this.#options.clock);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer();
    await this.#running.idle();
  }

  #look(): void {
    if (this.#isStopped) return;
    this.#stopTimer = this.#options.clock.schedule(() => {
      void this.follow().then(() => this.#look());
    }, lookIntervalMs);
  }

  async #follow(): Promise<void> {
    const { store, clock, events } = this.#options;
    if (this.#isStopped) return;
    try {
      await this.#publish();
      const tables = await store.load(clock.now() - longestCallMs, this.#version);
      if (tables !== undefined) {
        this.#tell(tables);
        const version = tables[0]?.version;
        // An older database was restored: it may lack what was published.
        if ((version ?? 0) < (this.#version ?? 0)) this.#published = undefined;
        this.#version = version;
        await this.#keep(tables);
      }
      events.prices.recovered();
    } catch (error) {
      events.prices.failed(error);
      if (!this.#hasTold) this.#tell(await this.#readKept());
    }
  }

  async #publish(): Promise<void> {
    const { store, events, clock, publishes } = this.#options;
    const [config, now] = [this.#options.config(), clock.now()];
    const day = Math.floor(now / dayMs);
    const last = this.#published;
    if (!publishes() || (last?.config === config && last.day === day)) return;
    const table = await store.publish(effectivePrices(config, now));
    this.#published = { config, day };
    if (table !== undefined) events.pricesPublished(table);
  }

  #tell(tables: readonly PriceTable[]): void {
    this.#hasTold = true;
    this.#options.tell(tables);
  }

  async #keep(tables: readonly PriceTable[]): Promise<void> {
    const { config, publishes } = this.#options;
    if (!publishes() || config().storage.backend === "sqlite") return;
    const path = pathIn(config().dataDir);
    await rm(`${path}.new`, { force: true });
    await writeFile(`${path}.new`, JSON.stringify(tables), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  async #readKept(): Promise<readonly PriceTable[]> {
    const text = await readFile(pathIn(this.#options.config().dataDir), "utf8").catch(() => "[]");
    return parseKept(text);
  }
}

function pathIn(dataDir: string): string {
  return join(dataDir, "prices");
}

/** It is replaced at once, so nothing else has written it. */
function parseKept(text: string): readonly PriceTable[];
function parseKept(text: string): unknown {
  const tables: unknown = JSON.parse(text);
  return tables;
}
