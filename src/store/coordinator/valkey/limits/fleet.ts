import type { Clock } from "../../../../domain/clock.ts";
import { listOf } from "../connection/list-of.ts";
import { scriptOf, type ValkeyConnection } from "../connection/valkey-connection.ts";

/** A worker that has not reported for this long is not counted. */
const lifetimeMs = 5_000;
const intervalMs = 1_000;
/** Until the server has told the name of its memory, it does not decide. */
const retryMs = 100;
/**
 * How long a server without memory does not decide: by then all workers have reported, and have
 * told it what they had admitted.
 */
const restoreMs = 1_250;
const fleetKey = "sluice:{workers}";
const memoryKey = "sluice:{workers}:memory";

/**
 * Notes a worker; returns how many have reported lately, the name of the server's memory and its
 * age. A name that is gone tells that the server has lost everything; the first worker to notice
 * that gives it a new one.
 */
export const fleetScript = scriptOf(
  "fleet",
  `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[2])
local memory = redis.call('GET', KEYS[2]) or string.format('%s:%.0f', ARGV[3], now)
redis.call('SET', KEYS[2], memory, 'PX', 3600000)
local name, since = string.match(memory, '^(.*):(%d+)$')
return { redis.call('ZCARD', KEYS[1]), name, now - since }`,
);

export interface FleetOptions {
  readonly connection: Pick<ValkeyConnection, "run" | "send">;
  readonly clock: Clock;
  /** Unique among all workers. */
  readonly worker: string;
  /** Workers of this gateway: the least that can be. */
  readonly ownWorkers: number;
  /** Runs after each report that has arrived. */
  readonly onBeat: () => Promise<void>;
  /** Runs before that when the server has lost what it knew. */
  readonly onLoss: () => void;
}

/** All workers of all gateways, and whether the server knows what they have admitted. */
export class Fleet {
  readonly #options: FleetOptions;
  #workers: number;
  #fewerSinceMs: number | undefined;
  /** The name of the server's memory; undefined until it has answered. */
  #memory: string | undefined;
  /** Whether the server has not been away since it was asked for that name. */
  #isMemoryKnown = false;
  #trustedFromMs = Number.NEGATIVE_INFINITY;
  #memories = 0;
  #beating: Promise<void> | undefined;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#workers = options.ownWorkers;
  }

  /** While the server does not answer, the last number stays. */
  get workers(): number {
    return this.#workers;
  }

  /** Whether the server may decide: it is not about to be told what it has lost. */
  get isTrusted(): boolean {
    return this.#isMemoryKnown && this.#options.clock.monotonic() >= this.#trustedFromMs;
  }

  /** Reports this worker now, and then each second. */
  check(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
      this.#checkLater();
    });
    return this.#beating;
  }

  /** The server does not answer; when it does again, it may have lost what it knew. */
  away(): void {
    this.#isMemoryKnown = false;
    this.#fewerSinceMs = undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    const { connection, worker } = this.#options;
    await connection.send(fleetKey, "ZREM", [fleetKey, worker]).catch(() => undefined);
  }

  #checkLater(): void {
    if (this.#isClosed) return;
    this.#cancel();
    const delayMs = this.#isMemoryKnown ? intervalMs : retryMs;
    this.#cancel = this.#options.clock.schedule(() => void this.check(), delayMs);
  }

  async #beat(): Promise<void> {
    const { connection, worker, onBeat } = this.#options;
    this.#memories += 1;
    const parameters = [worker, String(lifetimeMs), `${worker}.${this.#memories}`];
    try {
      const reply = await connection.run(fleetScript, [fleetKey, memoryKey], parameters);
      const [workers, name, ageMs] = listOf(reply);
      this.#remember(String(name), Number(ageMs));
      this.#count(Number(workers));
      await onBeat();
    } catch {
      // The connection reports that it is down.
    }
  }

  #remember(memory: string, ageMs: number): void {
    const known = this.#memory;
    this.#memory = memory;
    this.#isMemoryKnown = true;
    // A worker that starts has nothing to tell.
    if (memory === known || known === undefined) return;
    this.#trustedFromMs = this.#options.clock.monotonic() + restoreMs - Math.max(0, ageMs);
    this.#fewerSinceMs = undefined;
    this.#options.onLoss();
  }

  /** Fewer workers are believed after a while: a server that was lost hears of them one by one. */
  #count(workers: number): void {
    const now = this.#options.clock.monotonic();
    if (workers < this.#workers) {
      this.#fewerSinceMs ??= now;
      if (now < this.#fewerSinceMs + lifetimeMs) return;
    }
    this.#fewerSinceMs = undefined;
    this.#workers = Math.max(this.#options.ownWorkers, workers);
  }
}
