/**
 * A map that drops entries not written or touched for a lifetime, without timers or scans:
 * entries live in two generations, and the older one is dropped whole. An entry stays for at least
 * one lifetime and at most about two. Callers pass the time to `advance` before anything else.
 */
export class AgingMap<Value> {
  readonly #lifetime: number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  #youngSince: number;

  constructor(lifetime: number, now: number) {
    this.#lifetime = lifetime;
    this.#youngSince = now;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** When the map will be empty if nothing is written or touched any more. */
  get emptyAt(): number {
    return this.#youngSince + 2 * this.#lifetime;
  }

  advance(now: number): void {
    if (now < this.#youngSince + this.#lifetime) return;
    this.#old = now < this.emptyAt ? this.#young : new Map<string, Value>();
    this.#young = new Map<string, Value>();
    this.#youngSince = now;
  }

  /** Reads without keeping the entry alive. */
  peek(key: string): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  /** Reads and keeps the entry alive for another lifetime. */
  touch(key: string): Value | undefined {
    const young = this.#young.get(key);
    if (young !== undefined || this.#old.size === 0) return young;
    const old = this.#old.get(key);
    if (old === undefined) return undefined;
    this.#old.delete(key);
    this.#young.set(key, old);
    return old;
  }

  *entries(): Iterable<[string, Value]> {
    yield* this.#old;
    yield* this.#young;
  }

  set(key: string, value: Value): void {
    if (this.#old.size > 0) this.#old.delete(key);
    this.#young.set(key, value);
  }

  /** Reads and removes. */
  take(key: string): Value | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) {
      this.#young.delete(key);
      return young;
    }
    const old = this.#old.get(key);
    if (old !== undefined) this.#old.delete(key);
    return old;
  }
}
