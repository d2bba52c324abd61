import { sql } from "kysely";
import { withRawRows } from "../raw-rows.ts";
import type { Queries } from "../tables.ts";
import { type AggregateQuestion, findGroups, rangeCondition, rangesOf } from "./usage-aggregate.ts";
import type { RangePiece } from "./usage-range.ts";
import { stepTables } from "./usage-steps.ts";

/** Most groups held; beyond that, the ones with the fewest calls so far are dropped. */
const groupsLimit = 200_000;

/** Groups per read of names. */
const namesAtOnce = 1_000;

interface RankedRow {
  readonly id: number;
  readonly calls: number;
}

/** Ids of groups with the same name, which differ by detail. */
interface NamedGroups {
  readonly ids: number[];
  calls: number;
}

/** Finds the groups with the most calls, with little memory per group and none per step. */
export class UsageRanking {
  readonly #question: AggregateQuestion;
  readonly #groupsLimit: number;
  #calls = new Map<number, number>();
  readonly #named = new Map<string, NamedGroups>();

  constructor(question: AggregateQuestion, limit = groupsLimit) {
    this.#question = question;
    this.#groupsLimit = limit;
  }

  async addPiece(queries: Queries, piece: RangePiece): Promise<void> {
    for (const range of await rangesOf(queries, this.#question, piece)) {
      const select = sql<RankedRow>`
        select group_id as id, calls from ${sql.table(stepTables[range.step])}
        where ${rangeCondition(this.#question, range)}`;
      for (const { id, calls } of (await select.execute(withRawRows(queries))).rows) {
        this.#calls.set(id, (this.#calls.get(id) ?? 0) + calls);
      }
    }
    if (this.#calls.size > this.#groupsLimit) this.#letGo();
  }

  /** Must be called after the last piece until it returns false. */
  async nameSome(queries: Queries): Promise<boolean> {
    const ids = [...this.#calls.keys().take(namesAtOnce)];
    const groups = await findGroups(queries, { ids, by: this.#question.by });
    for (const id of ids) {
      const group = groups.get(id);
      if (group !== undefined) this.#addNamed(group.name, { id, calls: this.#calls.get(id) ?? 0 });
      this.#calls.delete(id);
    }
    return this.#calls.size > 0;
  }

  /** The ids of the groups with the most calls; ties have a stable order. */
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
