import { nextTurn, oneTurnBytes } from "../../domain/waiting/wait.ts";
import type { Proxies } from "../../domain/upstream-settings.ts";
import type { Transport } from "../transport.ts";
import { Addresses, type Origin } from "./address.ts";
import { ConnectionPool, type PoolShare } from "./connection-pool.ts";
import { Exchange } from "./exchange.ts";

export interface HttpClientOptions {
  readonly proxies: Proxies;
  /** Limit on the connections of the process. */
  readonly mostConnections: number;
  readonly monotonic: () => number;
}

/** Interval at which idle connections are checked. */
const sweepMs = 1_000;

/** Makes a client of HTTP/1.1 that keeps its connections. It follows no redirect. */
export function createUpstreamClient(options: HttpClientOptions): Transport {
  const addresses = new Addresses(options.proxies);
  const pools = new Pools(options);
  return (url, request) => {
    const exchange = new Exchange(request, addresses.find(url, request.connections));
    request.progress.started(exchange);
    if (exchange.bodyBytes <= oneTurnBytes) pools.send(exchange);
    // Yields after a large body was made, since writing it takes as long again.
    else void nextTurn().then(() => pools.send(exchange));
    return exchange.answer;
  };
}

/** The pools of a client, by origin. */
class Pools implements PoolShare {
  readonly #options: HttpClientOptions;
  readonly #pools = new Map<string, ConnectionPool>();
  /** Pools that wait for connections to close, in turn. */
  readonly #waiting = new Set<ConnectionPool>();
  #count = 0;
  #sweeper: ReturnType<typeof setTimeout> | undefined;

  constructor(options: HttpClientOptions) {
    this.#options = options;
  }

  send(exchange: Exchange): void {
    // It may have been cancelled in the meantime.
    if (exchange.request !== undefined) this.#poolOf(exchange.origin).send(exchange);
  }

  nowMs(): number {
    return this.#options.monotonic();
  }

  tryOpen(pool: ConnectionPool): boolean {
    while (this.#count >= this.#options.mostConnections) {
      if (this.#closeIdle()) continue;
      this.#waiting.add(pool);
      return false;
    }
    this.#count += 1;
    return true;
  }

  areOthersWaiting(pool: ConnectionPool): boolean {
    return this.#waiting.size > (this.#waiting.has(pool) ? 1 : 0);
  }

  closed(): void {
    this.#count -= 1;
    for (const pool of this.#waiting) {
      if (this.#count >= this.#options.mostConnections) return;
      this.#waiting.delete(pool);
      // It may no longer need one.
      pool.openMore();
    }
  }

  sweepSoon(): void {
    if (this.#sweeper !== undefined) return;
    this.#sweeper = setTimeout(() => this.#sweep(), sweepMs);
    this.#sweeper.unref();
  }

  #poolOf(origin: Origin): ConnectionPool {
    let pool = this.#pools.get(origin.key);
    if (pool === undefined) {
      pool = new ConnectionPool(origin, this);
      this.#pools.set(origin.key, pool);
    }
    return pool;
  }

  #closeIdle(): boolean {
    for (const pool of this.#pools.values()) {
      if (pool.closeIdle()) return true;
    }
    return false;
  }

  #sweep(): void {
    this.#sweeper = undefined;
    let isToSweep = false;
    for (const [key, pool] of this.#pools) {
      pool.sweep();
      isToSweep ||= pool.isToSweep;
      if (pool.isUnused) this.#pools.delete(key);
    }
    if (isToSweep) this.sweepSoon();
  }
}
