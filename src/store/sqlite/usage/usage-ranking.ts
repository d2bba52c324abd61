import type { Database } from "bun:sqlite";
import { type AggregateQuestion, rangeCondition, rangesOf, findGroup } from "./usage-aggregate.ts";
import type { RangePiece } from "./usage-range.ts";
import type { ColumnValue } from "./usage-row.ts";
import { stepTables } from "./usage-steps.ts";

/** Most groups that are held; of more, those with the fewest calls so far are let go. */
const groupsLimit = 200_000;

/** Groups whose names are read at once. */
const namesAtOnce = 1_000;

interface RankedRow {
  readonly id: number;
  readonly calls: number;
}

/** Groups of the same name: sums of different detail number them differently. */
interface NamedGroups {
  readonly ids: number[];
  calls: number;
}

/** Finds the groups with the most calls, with little memory for each group and none for steps. */
export class UsageRanking {
  readonly #question: AggregateQuestion;
  readonly #groupsLimit: number;
  #calls = new Map<number, number>();
  readonly #named = new Map<string, NamedGroups>();

  constructor(question: AggregateQuestion, limit = groupsLimit) {
    this.#question = question;
    this.#groupsLimit = limit;
  }

  addPiece(database: Database, piece: RangePiece): void {
    const read = database.transaction(() => {
      for (const range of rangesOf(database, this.#question, piece)) {
        const { sql, values } = rangeCondition(this.#question, range);
        const query = database.query<RankedRow, ColumnValue[]>(
          `SELECT group_id AS id, calls FROM ${stepTables[range.step]} WHERE ${sql}`,
        );
        for (const { id, calls } of query.all(...values)) {
          this.#calls.set(id, (this.#calls.get(id) ?? 0) + calls);
        }
      }
    });
    read.deferred();
    if (this.#calls.size > this.#groupsLimit) this.#letGo();
  }

  /** To be called after the last piece, until it returns false. */
  nameSome(database: Database): boolean {
    let names = 0;
    for (const [id, calls] of this.#calls) {
      if (names === namesAtOnce) return true;
      names += 1;
      this.#calls.delete(id);
      const group = findGroup(database, { id, by: this.#question.by });
      if (group !== undefined) this.#addNamed(group.name, { id, calls });
    }
    return false;
  }

  /** The ids of the groups with the most calls. What is equal has an order all the same. */
  largest(limit: number): readonly number[] {
    return [...this.#named]
      .toSorted(
        ([name, one], [otherName, other]) => other.calls - one.calls || (name < otherName ? -1 : 1),
      )
      .slice(0, limit)
      .flatMap(([, { ids }]) => ids);
  }

  #addNamed(name: string, { id, calls }: RankedRow): void {
    const named = this.#named.get(name);
    if (named === undefined) {
      this.#named.set(name, { ids: [id], calls });
      return;
    }
    named.ids.push(id);
    named.calls += calls;
  }

  #letGo(): void {
    const largestFirst = [...this.#calls].toSorted(([, one], [, other]) => other - one);
    this.#calls = new Map(largestFirst.slice(0, this.#groupsLimit / 2));
  }
}
