import type { Clock } from "../../../../domain/clock.ts";
import { listOf } from "../connection/list-of.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { ValkeyUnavailable } from "../connection/valkey-errors.ts";
import { fleetScript, joinedChannel } from "./fleet-script.ts";

/** A worker that has not reported for this long has ended, as far as the server knows. */
const lifetimeMs = 5_000;
const intervalMs = 1_000;
/** Until the server has told the name of its memory, it does not decide. */
const retryMs = 100;
/** Reports for which a worker still counts here after the server has stopped naming it. */
const keptReports = 10;
/**
 * How long a server without memory does not decide: by then all workers have reported, and have
 * told it what they had admitted.
 */
const restoreMs = 1_250;
const fleetKey = "sluice:{workers}";
const stateKey = "sluice:{workers}:state";

export interface FleetOptions {
  readonly connection: Pick<ValkeyConnection, "run" | "send" | "subscribe">;
  readonly clock: Pick<Clock, "schedule" | "monotonic">;
  /** Unique among all workers, and never used again. */
  readonly worker: string;
  /** Workers of this gateway: the least that can be. */
  readonly ownWorkers: number;
  /** Runs after each report that has arrived. */
  readonly onBeat?: () => Promise<void>;
  /** Runs before that when the server has lost what it knew. */
  readonly onLoss?: () => void;
  /** The server refuses reports, such as for a right that the user lacks. */
  readonly onError?: (error: unknown) => void;
}

/**
 * All workers of all gateways, and whether the server knows what they have admitted. How many they
 * are decides what each may do alone, so the number grows at once when a worker joins, and shrinks
 * late: a server that has just lost its data names only those that have reported to it since, and
 * may be gone again before it hears of the others.
 */
export class Fleet {
  readonly #options: FleetOptions;
  /** Those that the server named last. */
  #named: ReadonlySet<string>;
  /** Of which state of the server they are. */
  #version = "";
  /** Others that count: for how many more reports. */
  readonly #kept = new Map<string, number>();
  /** All that count, sorted. */
  #all: readonly string[];
  /** The name of the server's memory; undefined until it has answered. */
  #memory: string | undefined;
  #validSince = 0;
  /** The time of the last report that the server has answered, in its time. */
  #reportedAt = 0;
  /** Whether the server has not been away since it was asked for that name. */
  #isMemoryKnown = false;
  #trustedFromMs = Number.NEGATIVE_INFINITY;
  #reports = 0;
  #beating: Promise<void> | undefined;
  /** Whether the answer under way may be from before something that was noticed. */
  #isAskedAgain = false;
  #stopHearing: () => void = () => undefined;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#named = new Set([options.worker]);
    this.#all = [options.worker];
  }

  /** This worker's name. */
  get worker(): string {
    return this.#options.worker;
  }

  get workers(): number {
    return Math.max(this.#options.ownWorkers, this.#all.length);
  }

  /** Which worker this one is, from 1. */
  get number(): number {
    return this.#all.indexOf(this.worker) + 1;
  }

  /** Whether the server may decide: it is not about to be told what it has lost. */
  get isTrusted(): boolean {
    return this.#isMemoryKnown && this.#options.clock.monotonic() >= this.#trustedFromMs;
  }

  /** What the server wrote before is void: it has gone back to older data. In its time, in ms. */
  get validSince(): number {
    return this.#validSince;
  }

  /** Reports this worker, and then each second. */
  async start(): Promise<void> {
    this.#stopHearing = this.#options.connection.subscribe(joinedChannel, (worker) => {
      if (!this.#named.has(worker)) this.#kept.set(worker, keptReports);
      this.#recount();
    });
    await this.check();
  }

  /** Reports now. */
  check(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#isAskedAgain = this.#beating !== undefined;
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
      if (this.#isAskedAgain) void this.check();
      else this.#checkLater();
    });
    return this.#beating;
  }

  /** The server does not answer; when it does again, it may have lost what it knew. */
  away(): void {
    this.#isMemoryKnown = false;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    this.#stopHearing();
    const { connection } = this.#options;
    // The others read the list anew.
    await Promise.all([
      connection.send(fleetKey, "ZREM", [fleetKey, this.worker]),
      connection.send(stateKey, "HDEL", [stateKey, "version"]),
    ]).catch(() => undefined);
  }

  #checkLater(): void {
    if (this.#isClosed) return;
    this.#cancel();
    const delayMs = this.#isMemoryKnown ? intervalMs : retryMs;
    this.#cancel = this.#options.clock.schedule(() => void this.check(), delayMs);
  }

  async #beat(): Promise<void> {
    const { connection, onBeat, onError } = this.#options;
    this.#reports += 1;
    const newMemory = `${this.worker}.${this.#reports}`;
    try {
      const reply = await connection.run(
        fleetScript,
        [fleetKey, stateKey],
        [
          this.worker,
          String(lifetimeMs),
          joinedChannel,
          this.#version,
          newMemory,
          String(this.#reportedAt),
          String(this.#validSince),
        ],
      );
      const [version, memory, ageMs, validSince, now, ...workers] = listOf(reply);
      this.#reportedAt = Number(now);
      this.#validSince = Number(validSince);
      this.#remember(String(memory), Number(ageMs));
      this.#count(String(version), workers.map(String));
      onBeat?.().catch(() => undefined);
    } catch (error) {
      // The connection reports that it is down. Until then, the last known workers count.
      if (!(error instanceof ValkeyUnavailable)) onError?.(error);
    }
  }

  #remember(memory: string, ageMs: number): void {
    const known = this.#memory;
    this.#memory = memory;
    this.#isMemoryKnown = true;
    // A worker that starts cannot tell a server that has lost its memory from a new one.
    if (memory === known || known === undefined) return;
    this.#trustedFromMs = this.#options.clock.monotonic() + restoreMs - Math.max(0, ageMs);
    this.#options.onLoss?.();
  }

  /** `names`: none if they are those of before. */
  #count(version: string, names: readonly string[]): void {
    for (const [worker, reports] of this.#kept) {
      if (reports <= 1) this.#kept.delete(worker);
      else this.#kept.set(worker, reports - 1);
    }
    if (version !== this.#version) {
      const before = this.#named;
      this.#version = version;
      this.#named = new Set([...names, this.worker]);
      for (const worker of before) {
        if (!this.#named.has(worker)) this.#kept.set(worker, keptReports);
      }
      for (const worker of this.#named) this.#kept.delete(worker);
    }
    this.#recount();
  }

  #recount(): void {
    this.#all = [...this.#named, ...this.#kept.keys()].toSorted();
  }
}
