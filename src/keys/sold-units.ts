import { unitsIn, type UnitHoldings } from "../domain/limits/capacity.ts";
import type { Key } from "../domain/keys/key.ts";

/** The units of one key. */
interface Holding {
  readonly pool: string;
  readonly units: number;
  /** Milliseconds since the epoch; infinite: never. */
  readonly expiresAt: number;
}

/** All holdings by pool, valid until the next of them expires. */
interface HoldingsNow {
  readonly from: number;
  readonly until: number;
  readonly byPool: ReadonlyMap<string, UnitHoldings>;
}

const none: UnitHoldings = new Map();

/**
 * Units of provisioned throughput that live keys hold, by pool: counted again after a change of one
 * of them, and when one expires.
 */
export class SoldUnits {
  /** By key id. */
  readonly #holdings = new Map<string, Holding>();
  #now: HoldingsNow | undefined;

  /** Sets the units of a key; undefined: the key is not live. */
  set(keyId: string, key: Key | undefined): void {
    const hadUnits = this.#holdings.delete(keyId);
    const { provisionedPool: pool, provisionedUnits: units = 0, expiresAt = Infinity } = key ?? {};
    const hasUnits = pool !== undefined && units > 0;
    if (hasUnits) this.#holdings.set(keyId, { pool, units, expiresAt });
    if (hadUnits || hasUnits) this.#now = undefined;
  }

  /** Units of a pool at `now`, in milliseconds since the epoch. */
  of(pool: string, now: number): UnitHoldings {
    return this.#at(now).get(pool) ?? none;
  }

  ofKey({ pool, keyId }: { pool: string; keyId: string }, now: number): number {
    const holding = this.#holdings.get(keyId);
    return holding?.pool === pool && holding.expiresAt > now ? holding.units : 0;
  }

  /** Units by pool, without pools of which none are sold. */
  all(now: number): ReadonlyMap<string, number> {
    return new Map([...this.#at(now)].map(([pool, holdings]) => [pool, unitsIn(holdings)]));
  }

  #at(now: number): HoldingsNow["byPool"] {
    const known = this.#now;
    // A clock that was set back un-expires keys.
    if (known !== undefined && known.from <= now && now < known.until) return known.byPool;
    const byPool = new Map<string, Map<number, number>>();
    let until = Infinity;
    let from = -Infinity;
    for (const { pool, units, expiresAt } of this.#holdings.values()) {
      if (expiresAt <= now) {
        from = Math.max(from, expiresAt);
        continue;
      }
      until = Math.min(until, expiresAt);
      const keys = byPool.get(pool) ?? new Map<number, number>();
      byPool.set(pool, keys.set(units, (keys.get(units) ?? 0) + 1));
    }
    this.#now = { from, until, byPool };
    return byPool;
  }
}
