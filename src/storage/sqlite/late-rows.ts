import type { Database } from "bun:sqlite";
import type { UsageRecord } from "../../domain/usage.ts";
import { isErased } from "./tables/account-table.ts";

/** Rows that were not stored, since they came too late. */
export interface DroppedRows {
  readonly ofErasedAccounts: number;
}

/** Tells which rows of a batch come too late. Of one transaction. */
export class LateRows {
  readonly #database: Database;
  readonly #accounts = new Map<string, boolean>();
  #ofErasedAccounts = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  get dropped(): DroppedRows {
    return { ofErasedAccounts: this.#ofErasedAccounts };
  }

  isToBeDropped({ accountId }: UsageRecord): boolean {
    if (!this.#isErased(accountId)) return false;
    this.#ofErasedAccounts += 1;
    return true;
  }

  #isErased(accountId: string): boolean {
    let answer = this.#accounts.get(accountId);
    if (answer === undefined) {
      answer = isErased(this.#database, accountId);
      this.#accounts.set(accountId, answer);
    }
    return answer;
  }
}
