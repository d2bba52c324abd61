/**
 * An immutable map; an edit makes a new one. Entries are spread over many small maps, and an edit
 * copies only those it touches, so that a change among a million entries takes microseconds.
 */
export class ShardedMap<Value> {
  readonly size: number;
  readonly #shards: Shards<Value>;

  constructor(shards: Shards<Value>, size: number) {
    this.#shards = shards;
    this.size = size;
  }

  static empty<Value>(): ShardedMap<Value> {
    const shard: ReadonlyMap<string, Value> = new Map();
    return new ShardedMap(
      Array.from({ length: shardCount }, () => shard),
      0,
    );
  }

  get(key: string): Value | undefined {
    return this.#shards[shardOf(key)]?.get(key);
  }

  /** In no particular order. */
  *keys(): Generator<string> {
    for (const shard of this.#shards) yield* shard.keys();
  }

  *values(): Generator<Value> {
    for (const shard of this.#shards) yield* shard.values();
  }

  edit(): ShardedMapEdit<Value> {
    return new ShardedMapEdit(this, this.#shards);
  }
}

type Shards<Value> = readonly ReadonlyMap<string, Value>[];

export class ShardedMapEdit<Value> {
  readonly #base: ShardedMap<Value>;
  readonly #before: Shards<Value>;
  readonly #copies = new Map<number, Map<string, Value>>();
  #size: number;

  constructor(base: ShardedMap<Value>, shards: Shards<Value>) {
    this.#base = base;
    this.#before = shards;
    this.#size = base.size;
  }

  get(key: string): Value | undefined {
    const index = shardOf(key);
    return (this.#copies.get(index) ?? this.#before[index])?.get(key);
  }

  set(key: string, value: Value): void {
    const shard = this.#copyOf(key);
    const sizeBefore = shard.size;
    shard.set(key, value);
    this.#size += shard.size - sizeBefore;
  }

  delete(key: string): void {
    if (this.get(key) !== undefined && this.#copyOf(key).delete(key)) this.#size -= 1;
  }

  /** The edited map, or the original if nothing changed. */
  finish(): ShardedMap<Value> {
    if (this.#copies.size === 0) return this.#base;
    const shards = this.#before.map((shard, index) => this.#copies.get(index) ?? shard);
    this.#copies.clear();
    return new ShardedMap(shards, this.#size);
  }

  #copyOf(key: string): Map<string, Value> {
    const index = shardOf(key);
    const known = this.#copies.get(index);
    if (known !== undefined) return known;
    const copy = new Map(this.#before[index]);
    this.#copies.set(index, copy);
    return copy;
  }
}

/** A power of two. */
const shardCount = 1_024;

/** Keys are ids that end in random characters, so the ends spread evenly. */
function shardOf(key: string): number {
  const end = key.length;
  return (key.charCodeAt(end - 1) * 61 + key.charCodeAt(end - 2)) & (shardCount - 1);
}
