/** What LiteLLM picks a deployment by. */
export interface Preference {
  readonly order: number | undefined;
  readonly weight: number | undefined;
  readonly rpm: number | undefined;
  readonly tpm: number | undefined;
}

export interface Rank {
  readonly priority: number;
  readonly weight: number;
}

const measures = ["weight", "rpm", "tpm"] as const;
const mostWeight = 1_000_000;

/**
 * LiteLLM takes deployments of the lowest `order` first, and those without one only if no other can
 * serve. It shares calls by the first of `weight`, `rpm` and `tpm` that any of them has; one without
 * it, or with 0, serves only if none with a share can.
 */
export function rankTargets(preferences: readonly Preference[]): readonly Rank[] {
  const ranks = new Map<Preference, Rank>();
  const orders = [...new Set(preferences.map(orderOf))].toSorted((one, other) => one - other);
  let priority = 0;
  for (const order of orders) {
    let rest = preferences.filter((each) => orderOf(each) === order);
    while (rest.length > 0) {
      priority += 1;
      const shared = shareOut(rest);
      for (const [each, weight] of shared) ranks.set(each, { priority, weight });
      rest = rest.filter((each) => !shared.has(each));
    }
  }
  return preferences.map((each) => ranks.get(each) ?? { priority: 1, weight: 1 });
}

/** Of two deployments of the same target. */
export function togetherOf(one: Rank, other: Rank): Rank {
  if (one.priority !== other.priority) return one.priority < other.priority ? one : other;
  return { ...one, weight: Math.min(mostWeight, one.weight + other.weight) };
}

function orderOf({ order = Number.POSITIVE_INFINITY }: Preference): number {
  return order;
}

/** Weights of those that get a share. */
function shareOut(among: readonly Preference[]): ReadonlyMap<Preference, number> {
  const measure = measures.find((name) => among.some((each) => (each[name] ?? 0) > 0));
  if (measure === undefined) return new Map(among.map((each) => [each, 1]));
  const sharing = among.filter((each) => (each[measure] ?? 0) > 0);
  const weights = asWholeNumbers(sharing.map((each) => each[measure] ?? 0));
  return new Map(sharing.map((each, index) => [each, weights[index] ?? 1]));
}

/** The same proportions in small whole numbers; rounded only where they would be beyond `mostWeight`. */
function asWholeNumbers(shares: readonly number[]): readonly number[] {
  const decimals = [0, 1, 2, 3, 4, 5, 6].find((digits) =>
    shares.every(
      (share) => Math.abs(share * 10 ** digits - Math.round(share * 10 ** digits)) < 1e-6,
    ),
  );
  const whole = shares.map((share) => Math.round(share * 10 ** (decimals ?? 6)));
  const divisor = whole.reduce(greatestDivisor, 0) || 1;
  const most = Math.max(...whole) / divisor;
  const scale = most > mostWeight ? mostWeight / most : 1;
  return whole.map((share) => Math.max(1, Math.round((share / divisor) * scale)));
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other);
}
