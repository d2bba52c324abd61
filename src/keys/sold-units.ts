import { unitsIn, type UnitHoldings } from "../domain/limits/capacity.ts";
import type { Key } from "../domain/keys/key.ts";
import { ShardedMap, type ShardedMapEdit } from "./sharded-map.ts";

/** The units of one key. */
interface Holding {
  readonly pool: string;
  readonly units: number;
  /** Milliseconds since the epoch; undefined: never. */
  readonly expiresAt: number | undefined;
}

/** Holdings by pool. */
type PoolHoldings = ReadonlyMap<string, UnitHoldings>;

/** All holdings, valid until the next of them expires. */
interface HoldingsNow {
  readonly from: number;
  readonly until: number;
  readonly byPool: PoolHoldings;
}

const none: UnitHoldings = new Map();

/**
 * Units of provisioned throughput that live keys hold, by pool. Immutable. Counts are updated as
 * keys change; the few keys with an expiry are recounted when one of them expires.
 */
export class SoldUnits {
  readonly #parts: Parts;
  #now: HoldingsNow | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  static none(): SoldUnits {
    return new SoldUnits({ holdings: ShardedMap.empty(), lasting: new Map(), ending: new Map() });
  }

  /** Units of a pool at `now`, in milliseconds since the epoch. */
  of(pool: string, now: number): UnitHoldings {
    return this.#at(now).get(pool) ?? none;
  }

  ofKey({ pool, keyId }: { pool: string; keyId: string }, now: number): number {
    const holding = this.#parts.holdings.get(keyId);
    if (holding?.pool !== pool || (holding.expiresAt ?? Infinity) <= now) return 0;
    return holding.units;
  }

  /** Units by pool, without pools of which none are sold. */
  all(now: number): ReadonlyMap<string, number> {
    return new Map([...this.#at(now)].map(([pool, holdings]) => [pool, unitsIn(holdings)]));
  }

  edit(): SoldUnitsEdit {
    return new SoldUnitsEdit(this, this.#parts);
  }

  #at(now: number): PoolHoldings {
    const { lasting, ending } = this.#parts;
    if (ending.size === 0) return lasting;
    const known = this.#now;
    // A clock that was set back un-expires keys.
    if (known !== undefined && known.from <= now && now < known.until) return known.byPool;
    const byPool = new PoolHoldingsEdit(lasting);
    let until = Infinity;
    for (const { expiresAt = Infinity, ...holding } of ending.values()) {
      if (expiresAt <= now) continue;
      byPool.add(holding, 1);
      until = Math.min(until, expiresAt);
    }
    this.#now = { from: now, until, byPool: byPool.edited };
    return byPool.edited;
  }
}

/** Copies a pool at its first change. */
class PoolHoldingsEdit {
  readonly #base: PoolHoldings;
  #pools: Map<string, UnitHoldings> | undefined;
  readonly #own = new Map<string, Map<number, number>>();

  constructor(base: PoolHoldings) {
    this.#base = base;
  }

  get edited(): PoolHoldings {
    return this.#pools ?? this.#base;
  }

  /** Adds a number of keys with this many units each; a negative number removes them. */
  add({ pool, units }: Pick<Holding, "pool" | "units">, keys: number): void {
    const pools = (this.#pools ??= new Map(this.#base));
    const own = this.#own.get(pool) ?? new Map(pools.get(pool));
    this.#own.set(pool, own);
    const count = (own.get(units) ?? 0) + keys;
    if (count === 0) own.delete(units);
    else own.set(units, count);
    if (own.size === 0) pools.delete(pool);
    else pools.set(pool, own);
  }
}

interface Parts {
  /** By key id. */
  readonly holdings: ShardedMap<Holding>;
  /** Holdings without an expiry. */
  readonly lasting: PoolHoldings;
  /** Holdings with an expiry, by key id. */
  readonly ending: ReadonlyMap<string, Holding>;
}

/** Applies changes to sold units to make the next ones. */
export class SoldUnitsEdit {
  readonly #base: SoldUnits;
  readonly #before: Parts;
  readonly #holdings: ShardedMapEdit<Holding>;
  readonly #lasting: PoolHoldingsEdit;
  /** Copied at the first change. */
  #ending: Map<string, Holding> | undefined;

  constructor(base: SoldUnits, parts: Parts) {
    this.#base = base;
    this.#before = parts;
    this.#holdings = parts.holdings.edit();
    this.#lasting = new PoolHoldingsEdit(parts.lasting);
  }

  /** Sets the units of a key; undefined: the key is not live. */
  set(keyId: string, key: Key | undefined): void {
    const before = this.#holdings.get(keyId);
    const after = key === undefined ? undefined : holdingOf(key);
    if (before === undefined && after === undefined) return;
    if (before !== undefined) this.#take(keyId, before);
    if (after !== undefined) this.#give(keyId, after);
  }

  /** The edit must not be used afterwards. */
  finish(): SoldUnits {
    const holdings = this.#holdings.finish();
    if (holdings === this.#before.holdings) return this.#base;
    const ending = this.#ending ?? this.#before.ending;
    return new SoldUnits({ holdings, lasting: this.#lasting.edited, ending });
  }

  #take(keyId: string, holding: Holding): void {
    this.#holdings.delete(keyId);
    if (holding.expiresAt === undefined) this.#lasting.add(holding, -1);
    else this.#endingCopy().delete(keyId);
  }

  #give(keyId: string, holding: Holding): void {
    this.#holdings.set(keyId, holding);
    if (holding.expiresAt === undefined) this.#lasting.add(holding, 1);
    else this.#endingCopy().set(keyId, holding);
  }

  #endingCopy(): Map<string, Holding> {
    return (this.#ending ??= new Map(this.#before.ending));
  }
}

function holdingOf(key: Key): Holding | undefined {
  const { provisionedPool: pool, provisionedUnits: units, expiresAt } = key;
  return pool === undefined || units <= 0 ? undefined : { pool, units, expiresAt };
}
