import type { Database } from "bun:sqlite";
import { AlreadyExists, StorageUnavailable } from "../../errors.ts";
import { breaksConstraint, constraints } from "./sqlite-trouble.ts";

/** A transaction for as long as it lasts. */
export class Scope {
  readonly #database: Database;
  #hasEnded = false;

  constructor(database: Database) {
    this.#database = database;
  }

  end(): void {
    this.#hasEnded = true;
  }

  /** Throws `AlreadyExists` for a taken id or name. */
  run<Result>(step: (database: Database) => Result): Promise<Result> {
    return new Promise((resolve) => resolve(this.#run(step)));
  }

  #run<Result>(step: (database: Database) => Result): Result {
    if (this.#hasEnded) throw new Error("the transaction has ended");
    // Without one, a step would be on its own and outlast a failure of the others.
    if (!this.#database.inTransaction) throw new StorageUnavailable("the transaction was undone");
    try {
      return step(this.#database);
    } catch (error) {
      if (!breaksConstraint(error, constraints.primaryKey, constraints.unique)) throw error;
      throw new AlreadyExists("the id or name is taken", { cause: error });
    }
  }
}
