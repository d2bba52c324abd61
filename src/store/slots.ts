/** What a process has, and wants, of a number of slots that all processes share. */
export interface SlotWish {
  /** What the slots are of, such as a pool. */
  readonly bound: string;
  /** How many there are in all. */
  readonly limit: number;
  /** How many the process keeps. */
  readonly held: number;
  /** How many more it would take. */
  readonly more: number;
}

/** How processes share slots; together they never have more than there are. */
export interface SlotStore {
  /** False: nobody knows what all hold, and each process has its share. */
  readonly decides: boolean;
  /** How many processes share the slots. */
  readonly processes: number;
  /** How long a process has slots without another word: its calls may outlive it upstream. */
  readonly lifeMs: number;
  /** Keeps what is held, and takes more. */
  take(wish: SlotWish): Promise<SlotGrant>;
}

export interface SlotGrant {
  /** How many more the process got. */
  readonly granted: number;
  /** An equal part for each process that has too few; Infinity: no other process has. */
  readonly fair: number;
}
