import type { Origin } from "./address.ts";
import { Connection, type ConnectionOwner } from "./connection.ts";
import type { Carrier, Exchange } from "./exchange.ts";

/** The limits that the pools of a client share. */
export interface PoolShare {
  nowMs(): number;
  /** Whether one more connection may be opened; counts it. Calls `openMore` later if not. */
  tryOpen(pool: ConnectionPool): boolean;
  /** Whether other pools wait for a connection to close. */
  areOthersWaiting(pool: ConnectionPool): boolean;
  closed(): void;
  /** Calls `sweep` later. */
  sweepSoon(): void;
}

/**
 * Number of connections still opening that no request waits for and that cannot be closed before
 * the server responds. Above it, requests share them instead of opening more.
 */
const mostAbandoned = 64;

/** Limit on opening a connection whose request was sent on another one. */
const longestSpareOpeningMs = 30_000;

/** The connections to one server. */
export class ConnectionPool implements ConnectionOwner, Carrier {
  readonly #origin: Origin;
  readonly #share: PoolShare;
  /**
   * The most recently used one is at the end and is used first, so that the others can be closed.
   */
  readonly #idle: Connection[] = [];
  /** In order of arrival. */
  readonly #waiting = new Set<Exchange>();
  readonly #opening = new Map<Exchange, Connection>();
  readonly #abandoned = new Set<Connection>();
  #count = 0;

  constructor(origin: Origin, share: PoolShare) {
    this.#origin = origin;
    this.#share = share;
  }

  get isUnused(): boolean {
    return this.#count === 0 && this.#waiting.size === 0;
  }

  send(exchange: Exchange): void {
    const connection = this.#takeIdle();
    if (connection === undefined) return this.#wait(exchange);
    // Only the proxy could be probed, not the host.
    if (this.#origin.proxy !== undefined) exchange.request?.progress.connected();
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

  /**
   * The server's own idle timeout, if it states one, must not end while a request is being sent.
   */
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
