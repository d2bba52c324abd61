/** A process that takes part in a division. */
export interface Share {
  readonly name: string;
  readonly accounts: number;
  readonly places: number;
  /** When it last got or gave back places. */
  readonly since: number;
}

/** What is divided, and among whom. */
export interface Division<Entry extends Share> {
  readonly free: number;
  readonly among: readonly Entry[];
  readonly wantOf: (entry: Entry) => number;
  /** Whether what each has counts; else all begin with nothing. */
  readonly isOnTop: boolean;
}

export interface Parts<Entry> {
  readonly got: ReadonlyMap<Entry, number>;
  readonly left: number;
  /** Whether there was something, but less than all want: that takes the server longer. */
  readonly isScarce: boolean;
}

const nothing = { got: new Map(), left: 0, isScarce: false } as const;

/**
 * The function `divide` of the script: the most even division, where each gets what lifts it to the
 * same places for each of its accounts, and no more than it wants.
 */
export function divide<Entry extends Share>(division: Division<Entry>): Parts<Entry> {
  const { free, among, wantOf } = division;
  const total = among.reduce((sum, entry) => sum + wantOf(entry), 0);
  if (total > free) return free > 0 ? divideScarce(division) : nothing;
  const got = new Map(among.map((entry) => [entry, wantOf(entry)]));
  return { got, left: free - total, isScarce: false };
}

function divideScarce<Entry extends Share>(division: Division<Entry>): Parts<Entry> {
  const { free, wantOf, isOnTop } = division;
  const among = division.among.filter((entry) => wantOf(entry) > 0);
  const baseOf = (entry: Entry): number => (isOnTop ? entry.places : 0);
  const liftTo = (level: number, entry: Entry): number =>
    Math.max(0, Math.min(wantOf(entry), Math.floor(level * entry.accounts - baseOf(entry))));
  const most = Math.max(...among.map(({ accounts }) => accounts));
  const enoughFor = (entry: Entry): number => (baseOf(entry) + wantOf(entry)) / entry.accounts + 1;
  let [low, high] = [0, Math.max(...among.map(enoughFor))];
  // As fine as needed for each to get at most one of the rest.
  while ((high - low) * most > 1) {
    const level = (low + high) / 2;
    let sum = 0;
    for (const entry of among) sum += liftTo(level, entry);
    if (sum <= free) low = level;
    else high = level;
  }
  const got = new Map(among.map((entry) => [entry, liftTo(low, entry)]));
  const gotOf = (entry: Entry): number => got.get(entry) ?? 0;
  let left = free;
  for (const part of got.values()) left -= part;
  const levelOf = (entry: Entry): number => (baseOf(entry) + gotOf(entry)) / entry.accounts;
  const rest = among
    .filter((entry) => gotOf(entry) < wantOf(entry))
    .toSorted(
      (one, other) =>
        levelOf(one) - levelOf(other) ||
        (isOnTop ? 0 : one.places - other.places) ||
        one.since - other.since ||
        (one.name < other.name ? -1 : 1),
    );
  for (const entry of rest.slice(0, Math.max(0, left))) got.set(entry, gotOf(entry) + 1);
  return { got, left: 0, isScarce: true };
}
