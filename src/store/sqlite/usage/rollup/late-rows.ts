import type { Database } from "bun:sqlite";
import type { UsageRecord } from "../../../../domain/usage/usage.ts";
import type { DroppedRows } from "../../../store.ts";
import { readHorizon } from "../usage-horizons.ts";

/** Finds the late rows of a batch in one transaction. */
export class LateRows {
  readonly #database: Database;
  readonly #accounts = new Map<string, boolean>();
  readonly #horizon: number;
  #ofErasedAccounts = 0;
  #tooOld = 0;

  constructor(database: Database) {
    this.#database = database;
    this.#horizon = readHorizon(database, "call");
  }

  get dropped(): DroppedRows {
    return { ofErasedAccounts: this.#ofErasedAccounts, tooOld: this.#tooOld };
  }

  isToBeDropped({ id, accountId, startedAt }: UsageRecord): boolean {
    if (this.#isErased(accountId)) {
      this.#ofErasedAccounts += 1;
      return true;
    }
    // The table refuses an invalid time.
    if (!(startedAt < this.#horizon)) return false;
    if (!this.#isStored(id)) this.#tooOld += 1;
    return true;
  }

  #isStored(id: string): boolean {
    const query = this.#database.query<unknown, [string]>("SELECT 1 FROM usage WHERE id = ?");
    return query.get(id) !== null;
  }

  #isErased(accountId: string): boolean {
    let answer = this.#accounts.get(accountId);
    if (answer === undefined) {
      const erased = this.#database.query("SELECT 1 FROM erased_accounts WHERE id = ?");
      answer = erased.get(accountId) !== null;
      this.#accounts.set(accountId, answer);
    }
    return answer;
  }
}
