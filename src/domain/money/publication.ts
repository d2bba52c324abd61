import { isSameValue } from "../json-object.ts";
import { type PriceTable, tableAt, type TargetPrice } from "./price.ts";

/** What calls should cost from a time on. */
export interface WantedPrices {
  /** Milliseconds since the epoch. */
  readonly validFrom: number;
  /** By target id; undefined for one that should have no price. */
  readonly prices: ReadonlyMap<string, TargetPrice | undefined>;
}

/** What has to change so that tables say what is wanted. */
export interface Publication {
  readonly published: readonly PriceTable[];
  /** Versions that have not begun yet, and shall not. */
  readonly withdrawn: readonly number[];
}

/**
 * The tables to publish: none for a time at which what is published already says the same. Targets
 * that are not configured any more keep their prices, because other processes may still serve them.
 * `wanted`: of now, and then of each later date on which it changes. `tables`: without withdrawn ones.
 */
export function planPublication(
  tables: readonly PriceTable[],
  wanted: readonly WantedPrices[],
  lastVersion: number,
): Publication {
  const now = wanted[0]?.validFrom ?? 0;
  const dates = new Set(wanted.map(({ validFrom }) => validFrom));
  const isObsolete = ({ validFrom }: PriceTable): boolean =>
    validFrom > now && !dates.has(validFrom);
  const kept = tables.filter((table) => !isObsolete(table));
  const published: PriceTable[] = [];
  for (const { validFrom, prices } of wanted) {
    const before = tableAt([...kept, ...published], validFrom);
    const targets = withPrices(before?.targets ?? {}, prices);
    // The first one is published without prices, too, or a later one would apply before its time.
    if (isSameValue(targets, before?.targets)) continue;
    published.push({ version: lastVersion + published.length + 1, validFrom, targets });
  }
  return { published, withdrawn: tables.filter(isObsolete).map(({ version }) => version) };
}

function withPrices(
  before: PriceTable["targets"],
  prices: WantedPrices["prices"],
): PriceTable["targets"] {
  const left = Object.entries(before).filter(([id]) => !prices.has(id));
  const priced = [...prices].flatMap(([id, price]) =>
    price === undefined ? [] : [[id, price] as const],
  );
  return Object.fromEntries([...left, ...priced]);
}
