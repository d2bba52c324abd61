import { nextTurn, oneTurnBytes } from "../../domain/waiting/wait.ts";
import type { Proxies } from "../../domain/upstream-settings.ts";
import type { Transport } from "../transport.ts";
import { Addresses, type Origin } from "./address.ts";
import { Connection, type ConnectionOwner } from "./connection.ts";
import { type Carrier, Exchange } from "./exchange.ts";

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

/** The pools of a client, by origin, and what they share. */
class Pools {
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

  /** Whether one more connection may be opened; counts it. Calls `openMore` later if not. */
  tryOpen(pool: ConnectionPool): boolean {
    while (this.#count >= this.#options.mostConnections) {
      if (this.#closeIdle()) continue;
      this.#waiting.add(pool);
      return false;
    }
    this.#count += 1;
    return true;
  }

  /** Whether other pools wait for a connection to close. */
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

/** Connections still opening that no request waits for; above it, requests share them. */
const mostAbandoned = 64;

/** Limit on opening a connection whose request was sent on another one. */
const longestSpareOpeningMs = 30_000;

/** The connections to one server. */
class ConnectionPool implements ConnectionOwner, Carrier {
  readonly #origin: Origin;
  readonly #share: Pools;
  /** The most recently used is last and is used first, so that the others can be closed. */
  readonly #idle: Connection[] = [];
  /** In order of arrival. */
  readonly #waiting = new Set<Exchange>();
  readonly #opening = new Map<Exchange, Connection>();
  readonly #abandoned = new Set<Connection>();
  #count = 0;

  constructor(origin: Origin, share: Pools) {
    this.#origin = origin;
    this.#share = share;
  }

  get isUnused(): boolean {
    return this.#count === 0 && this.#waiting.size === 0;
  }

  send(exchange: Exchange): void {
    const connection = this.#takeIdle();
    if (connection === undefined) return this.#wait(exchange);
    connection.begin(exchange);
  }

  /** Opens a connection for each exchange that waits without one, within the limits. */
  openMore(): void {
    for (const exchange of this.#waiting) {
      if (this.#opening.has(exchange)) continue;
      if (this.#abandoned.size >= mostAbandoned || !this.#share.tryOpen(this)) return;
      this.#open(exchange);
    }
  }

  /** Closes connections that were idle for too long. */
  sweep(): void {
    const now = this.#share.nowMs();
    for (const connection of this.#idle.filter((each) => this.#isStale(each, now))) {
      connection.close();
    }
    for (const [exchange, { openedAt }] of this.#opening) {
      const isLate = now - openedAt >= longestSpareOpeningMs;
      if (isLate && !this.#waiting.has(exchange)) this.abandon(exchange);
    }
  }

  /** Closes the least recently used idle connection; false if there is none. */
  closeIdle(): boolean {
    const [oldest] = this.#idle;
    oldest?.close();
    return oldest !== undefined;
  }

  get isToSweep(): boolean {
    return this.#idle.length > 0 || this.#opening.size > 0;
  }

  nowMs(): number {
    return this.#share.nowMs();
  }

  onOpen(connection: Connection): void {
    const wasAbandoned = this.#leaveOpening(connection);
    this.#give(connection, true);
    if (wasAbandoned) this.openMore();
  }

  onOpenFailed(connection: Connection, error: Error): void {
    const { openedFor } = connection;
    this.#leaveOpening(connection);
    this.#forget();
    if (this.#waiting.delete(openedFor)) openedFor.fail(error);
    this.openMore();
  }

  onFree(connection: Connection): void {
    this.#give(connection, false);
  }

  /** The request is sent once more, on a new connection; the idle ones are probably dead too. */
  onStale(exchange: Exchange): void {
    while (this.closeIdle());
    exchange.needsNew = true;
    this.#wait(exchange);
  }

  onClosed(connection: Connection): void {
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#forget();
  }

  /** The exchange no longer waits. */
  abandon(exchange: Exchange): void {
    this.#waiting.delete(exchange);
    const connection = this.#opening.get(exchange);
    if (connection === undefined) return;
    this.#opening.delete(exchange);
    if (connection.stopOpening()) this.#forget();
    else this.#abandoned.add(connection);
  }

  pause(): void {}

  resume(): void {}

  #wait(exchange: Exchange): void {
    exchange.carrier = this;
    this.#waiting.add(exchange);
    this.openMore();
  }

  #open(exchange: Exchange): void {
    const connection = new Connection(this.#origin, this, exchange);
    this.#count += 1;
    this.#opening.set(exchange, connection);
    exchange.request?.progress.connecting();
    connection.open();
  }

  /** Whether no exchange was waiting for it any more. */
  #leaveOpening(connection: Connection): boolean {
    const { openedFor } = connection;
    if (this.#opening.get(openedFor) === connection) this.#opening.delete(openedFor);
    return this.#abandoned.delete(connection);
  }

  /** Gives a connection to the exchange that has waited longest, or keeps it. */
  #give(connection: Connection, isNew: boolean): void {
    const now = this.#share.nowMs();
    const isDue = this.#share.areOthersWaiting(this);
    for (const exchange of this.#waiting) {
      if (!isNew && exchange.needsNew && this.#opening.has(exchange)) continue;
      if (!isNew && (isDue || exchange.needsNew || this.#isStale(connection, now))) {
        connection.close();
        return this.openMore();
      }
      this.#waiting.delete(exchange);
      if (this.#opening.has(exchange)) this.#share.sweepSoon();
      exchange.request?.progress.connected();
      return connection.begin(exchange);
    }
    connection.keep(now);
    const { mostIdle } = this.#origin.settings;
    const isKept = this.#idle.length < mostIdle && !isDue;
    if (!isKept || (!isNew && this.#isStale(connection, now))) return connection.close();
    this.#idle.push(connection);
    this.#share.sweepSoon();
  }

  #takeIdle(): Connection | undefined {
    const now = this.#share.nowMs();
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || !this.#isStale(connection, now)) return connection;
      connection.close();
    }
  }

  /** The server's own idle timeout, if stated, must not end while a request is being sent. */
  #isStale({ openedAt, idleSince, keepAliveSeconds }: Connection, now: number): boolean {
    const { idleMs, ageMs } = this.#origin.settings;
    const serverMs =
      keepAliveSeconds === undefined ? Infinity : keepAliveSeconds * 1_000 - marginMs;
    return now - idleSince >= Math.min(idleMs, serverMs) || now - openedAt >= ageMs;
  }

  #forget(): void {
    this.#count -= 1;
    this.#share.closed();
  }
}

const marginMs = 1_000;
