import { RefusalLog } from "../../../admission/refusals/refusal-log.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { Refusal, RefusalFilter } from "../../../domain/errors/refusal.ts";
import type { RefusalStore } from "../../../store/refusal-store.ts";

/** Refusals wait this long for others, and are then written together. */
const flushMs = 100;
/** Most that one flush writes. In a flood the others are kept by this gateway only. */
const flushLimit = 100;

/**
 * The last refusals: those of this gateway in memory and, if it shares a store with others, those
 * of all gateways there. While the store is unavailable, only this gateway's are known.
 */
export class KeptRefusals {
  readonly #own = new RefusalLog();
  readonly #clock: Pick<Clock, "schedule">;
  #shared: RefusalStore | undefined;
  #waiting: Refusal[] = [];
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  /** Call once. Refusals of before stay with this gateway. */
  share(store: RefusalStore): void {
    if (this.#isClosed) store.close();
    else this.#shared = store;
  }

  record(refusal: Refusal): void {
    this.#own.record(refusal);
    if (this.#shared === undefined || this.#waiting.length >= flushLimit) return;
    this.#waiting.push(refusal);
    this.#cancel ??= this.#clock.schedule(() => void this.#flush(), flushMs);
  }

  async find(id: string): Promise<Refusal | undefined> {
    return this.#own.find(id) ?? (await this.#orNothing((shared) => shared.find(id)));
  }

  async list(filter: RefusalFilter, limit: number): Promise<readonly Refusal[]> {
    const own = this.#own.list(filter, limit);
    const others = (await this.#orNothing((shared) => shared.list(filter, limit))) ?? [];
    if (others.length === 0) return own;
    const byId = new Map([...others, ...own].map((refusal) => [refusal.id, refusal]));
    return [...byId.values()].toSorted((one, other) => other.at - one.at).slice(0, limit);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#flush();
    this.#shared?.close();
  }

  async #flush(): Promise<void> {
    this.#cancel = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    await Promise.all(waiting.map((refusal) => this.#orNothing((shared) => shared.keep(refusal))));
  }

  /** The limits report a server that is unavailable. */
  async #orNothing<Result>(
    ask: (shared: RefusalStore) => Promise<Result>,
  ): Promise<Result | undefined> {
    if (this.#shared === undefined) return undefined;
    return ask(this.#shared).catch(() => undefined);
  }
}
