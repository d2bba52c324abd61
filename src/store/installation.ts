/** What tells whose a database is. */
export interface DatabaseFacts {
  /** Where it lies. */
  readonly path: string;
  /** `missing`: there is no file; `empty`: one without any table. */
  readonly state: "missing" | "empty" | "filled";
  /** Undefined where no gateway has claimed it, as before there were claims. */
  readonly installation: string | undefined;
  /** Of the pepper that made what is newest in it; undefined where it was never noted. */
  readonly pepperMark: string | undefined;
  readonly hasSecrets: boolean;
}

/** What a database is marked with by the gateway whose it is. */
export interface DatabaseClaim {
  readonly installation: string;
  readonly pepperMark: string;
  /** When it is marked so. */
  readonly at: number;
}

/** Decides whether a database is the one that is meant, each time it is opened. */
export interface DatabaseOwner {
  /** Throws `WrongDatabase` when it is not. Nothing was written to it, nor made in its place. */
  check(facts: DatabaseFacts): void;
  /** What to mark a database with that was checked. Keeps what must not be lost once it is marked. */
  claim(facts: DatabaseFacts): DatabaseClaim;
}
