/** What a process wants of a bound that several processes share. */
export interface AllotmentWish {
  /** The bound, such as the places of a pool. */
  readonly bound: string;
  readonly limit: number;
  /** Grows with each wish of the process for the bound: an older one that comes late is ignored. */
  readonly sequence: number;
  /** How many of its places are in use. */
  readonly used: number;
  /** How many of its places it keeps, used or not. */
  readonly kept: number;
  /** How many more it has calls for. */
  readonly wanted: number;
  /** How many of these come before the wishes of all others. */
  readonly wantedFirst: number;
  /** Its weight: the accounts that hold or want places. */
  readonly accounts: number;
  /** How many places it had when it asked. */
  readonly allotted: number;
}

export interface Allotment {
  /** How many places the process may use from now on. */
  readonly places: number;
  /** Its fair part: as calls end, it gives back what it has above it. Infinity: nobody waits. */
  readonly fair: number;
  /** Whether the store did not know what the process had. Then it gave no more. */
  readonly isLost: boolean;
  /** Places that nobody has. */
  readonly free: number;
}

/**
 * What a process hears about a bound. `wanted`: some have too few places; `free`: ask now; `lost`:
 * nobody knows any more who has which.
 */
export interface AllotmentNews {
  readonly bound: string;
  readonly is: "wanted" | "free" | "lost";
}

/** How processes divide the places of a bound; together they never have more than its limit. */
export interface AllotmentStore {
  /** One round trip. Rejects when nobody can decide. */
  exchange(wish: AllotmentWish): Promise<Allotment>;
  /** Which of how many processes this one is, from 1, as last known. */
  readonly rank: { readonly number: number; readonly workers: number };
  /** Calls `hear` with news for this process. News may be lost. */
  onNews(hear: (news: AllotmentNews) => void): void;
  /** Whether the store is known to be available. */
  readonly isUp: boolean;
  /** Calls `changed` when the store has become available or unavailable. */
  onChange(changed: () => void): void;
  /** Hears nothing any more. */
  close(): void;
}

/** How long an allotment lasts without another exchange. */
export const allotmentLifeMs = 10_000;
