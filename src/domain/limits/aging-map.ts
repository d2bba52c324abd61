/**
 * A map that drops entries not written or touched for a lifetime, without timers: entries live in two
 * generations, and the older one is dropped whole, but for those that `keeps` names. Any other entry
 * stays for at least one lifetime and at most about two. Callers pass the time to `advance` before
 * anything else.
 */
export class AgingMap<Value> {
  readonly #lifetime: number;
  readonly #keeps: ((value: Value) => boolean) | undefined;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  #youngSince: number;

  constructor(lifetime: number, now: number, keeps?: (value: Value) => boolean) {
    this.#lifetime = lifetime;
    this.#keeps = keeps;
    this.#youngSince = now;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  advance(now: number): void {
    const ageNow = now - this.#youngSince;
    if (ageNow < this.#lifetime) return;
    const dropped = [this.#old];
    this.#old = this.#young;
    this.#young = new Map<string, Value>();
    this.#youngSince = now;
    if (ageNow >= 2 * this.#lifetime) {
      dropped.push(this.#old);
      this.#old = new Map<string, Value>();
    }
    if (this.#keeps === undefined) return;
    for (const generation of dropped) {
      for (const [key, value] of generation) if (this.#keeps(value)) this.#young.set(key, value);
    }
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
}
