/** What identifies the installation that a database belongs to. */
export interface DatabaseFacts {
  readonly path: string;
  /** `missing`: there is no file; `empty`: a file without tables. */
  readonly state: "missing" | "empty" | "filled";
  /** Undefined when no gateway has claimed the database. */
  readonly installation: string | undefined;
  /** The mark of the newest pepper used with the database; undefined when it was never stored. */
  readonly pepperMark: string | undefined;
  readonly hasSecrets: boolean;
}

/** What can be read of a database, without changing it, before a gateway uses it. */
export interface InspectedDatabase {
  /** Undefined if the user may not read or change it. */
  readonly database: DatabaseFacts | undefined;
}

/** What the owning gateway writes into its database. */
export interface DatabaseClaim {
  readonly installation: string;
  readonly pepperMark: string;
  /** When it is claimed. */
  readonly at: number;
}

/** Decides, each time a database is opened, whether it is the right one. */
export interface DatabaseOwner {
  /** Throws `WrongDatabase` when it is not; called before anything is written or created. */
  check(facts: DatabaseFacts): void;
  /** Returns the claim for a checked database, after storing what must not be lost with it. */
  claim(facts: DatabaseFacts): DatabaseClaim;
}
