import type { Key } from "../domain/key.ts";
import { ShardedMap, type ShardedMapEdit } from "./sharded-map.ts";

/** What one key holds. */
interface Holding {
  readonly pool: string;
  readonly units: number;
  /** Milliseconds since the epoch; undefined: never. */
  readonly expiresAt: number | undefined;
}

/** What holdings that end add to the sums, for as long as none of them ends. */
interface EndingUnits {
  readonly from: number;
  readonly until: number;
  readonly byPool: ReadonlyMap<string, number>;
}

/**
 * Units of provisioned throughput that live keys hold, by pool. Never edited: changes make another
 * one. Sums are kept as keys change; of keys that expire, which are few, they are made anew when one
 * of them does.
 */
export class SoldUnits {
  /** Of every key that holds units. */
  readonly #holdings: ShardedMap<Holding>;
  /** Of keys that never expire. */
  readonly #lasting: ReadonlyMap<string, number>;
  /** By key id: those that expire. */
  readonly #ending: ReadonlyMap<string, Holding>;
  #sums: EndingUnits | undefined;

  private constructor(
    holdings: ShardedMap<Holding>,
    lasting: ReadonlyMap<string, number>,
    ending: ReadonlyMap<string, Holding>,
  ) {
    this.#holdings = holdings;
    this.#lasting = lasting;
    this.#ending = ending;
  }

  static none(): SoldUnits {
    return new SoldUnits(ShardedMap.empty(), new Map(), new Map());
  }

  /** Units of a pool at a time, in milliseconds since the epoch. */
  of(pool: string, now: number): number {
    const lasting = this.#lasting.get(pool) ?? 0;
    return this.#ending.size === 0 ? lasting : lasting + (this.#endingAt(now).get(pool) ?? 0);
  }

  /** By pool; a pool of which no unit is sold is absent. */
  all(now: number): ReadonlyMap<string, number> {
    const pools = new Set([...this.#lasting.keys(), ...this.#endingAt(now).keys()]);
    return new Map([...pools].map((pool) => [pool, this.of(pool, now)]));
  }

  edit(): SoldUnitsEdit {
    const { lasting, ending } = { lasting: this.#lasting, ending: this.#ending };
    return new SoldUnitsEdit({ holdings: this.#holdings.edit(), lasting, ending }, (next) =>
      next.holdings === this.#holdings
        ? this
        : new SoldUnits(next.holdings, next.lasting, next.ending),
    );
  }

  #endingAt(now: number): ReadonlyMap<string, number> {
    const known = this.#sums;
    // A clock that was set back brings keys back.
    if (known !== undefined && known.from <= now && now < known.until) return known.byPool;
    const byPool = new Map<string, number>();
    let until = Infinity;
    for (const { pool, units, expiresAt = Infinity } of this.#ending.values()) {
      if (expiresAt <= now) continue;
      byPool.set(pool, (byPool.get(pool) ?? 0) + units);
      until = Math.min(until, expiresAt);
    }
    this.#sums = { from: now, until, byPool };
    return byPool;
  }
}

interface Parts<Holdings> {
  readonly holdings: Holdings;
  readonly lasting: ReadonlyMap<string, number>;
  readonly ending: ReadonlyMap<string, Holding>;
}

/** Collects changes of the units sold. */
export class SoldUnitsEdit {
  readonly #holdings: ShardedMapEdit<Holding>;
  readonly #finish: (parts: Parts<ShardedMap<Holding>>) => SoldUnits;
  #lasting: ReadonlyMap<string, number>;
  #ending: ReadonlyMap<string, Holding>;
  /** Copies of the two, made by the first change of each. */
  #ownLasting: Map<string, number> | undefined;
  #ownEnding: Map<string, Holding> | undefined;

  constructor(
    { holdings, lasting, ending }: Parts<ShardedMapEdit<Holding>>,
    finish: (parts: Parts<ShardedMap<Holding>>) => SoldUnits,
  ) {
    this.#holdings = holdings;
    this.#lasting = lasting;
    this.#ending = ending;
    this.#finish = finish;
  }

  /** What a key holds from now on; undefined: it is not live. */
  set(keyId: string, key: Key | undefined): void {
    const before = this.#holdings.get(keyId);
    const after = key === undefined ? undefined : holdingOf(key);
    if (before === undefined && after === undefined) return;
    if (before !== undefined) this.#take(keyId, before);
    if (after !== undefined) this.#give(keyId, after);
  }

  /** Nothing may be set afterwards. */
  finish(): SoldUnits {
    const holdings = this.#holdings.finish();
    return this.#finish({ holdings, lasting: this.#lasting, ending: this.#ending });
  }

  #take(keyId: string, { pool, units, expiresAt }: Holding): void {
    this.#holdings.delete(keyId);
    if (expiresAt === undefined) this.#add(pool, -units);
    else this.#endingCopy().delete(keyId);
  }

  #give(keyId: string, holding: Holding): void {
    this.#holdings.set(keyId, holding);
    if (holding.expiresAt === undefined) this.#add(holding.pool, holding.units);
    else this.#endingCopy().set(keyId, holding);
  }

  #add(pool: string, units: number): void {
    const sums = (this.#ownLasting ??= new Map(this.#lasting));
    this.#lasting = sums;
    const sum = (sums.get(pool) ?? 0) + units;
    if (sum === 0) sums.delete(pool);
    else sums.set(pool, sum);
  }

  #endingCopy(): Map<string, Holding> {
    const copy = (this.#ownEnding ??= new Map(this.#ending));
    this.#ending = copy;
    return copy;
  }
}

function holdingOf(key: Key): Holding | undefined {
  const { provisionedPool: pool, provisionedUnits: units, expiresAt } = key;
  return pool === undefined || units <= 0 ? undefined : { pool, units, expiresAt };
}
