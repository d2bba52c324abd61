import type { Clock } from "../../../../domain/clock.ts";
import { scriptOf, type ValkeyConnection } from "../connection/valkey-connection.ts";

/** A worker that has not reported for this long is not counted. */
const lifetimeMs = 5_000;
const intervalMs = 1_000;
const fleetKey = "sluice:{workers}";

/** Notes a worker, and counts those that have reported lately. */
export const fleetScript = scriptOf(
  "fleet",
  `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[2])
return redis.call('ZCARD', KEYS[1])`,
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
}

/** All workers of all gateways. While the server does not answer, the last number stays. */
export class Fleet {
  readonly #options: FleetOptions;
  #workers: number;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#workers = options.ownWorkers;
  }

  get workers(): number {
    return this.#workers;
  }

  /** Reports this worker, and then each second. */
  async start(): Promise<void> {
    await this.#beat();
    if (this.#isClosed) return;
    this.#cancel = this.#options.clock.schedule(() => void this.start(), intervalMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    const { connection, worker } = this.#options;
    await connection.send(fleetKey, "ZREM", [fleetKey, worker]).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    const { connection, worker, ownWorkers, onBeat } = this.#options;
    try {
      const reply = await connection.run(fleetScript, [fleetKey], [worker, String(lifetimeMs)]);
      if (typeof reply === "number") this.#workers = Math.max(ownWorkers, reply);
      await onBeat();
    } catch {
      // The connection reports that it is down.
    }
  }
}
