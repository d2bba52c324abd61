import { type Expression, type RawBuilder, type SqlBool, sql } from "kysely";
import type { Page, PageRequest } from "../control-store.ts";
import { RevisionConflict } from "../errors.ts";
import { decodeCursor, encodeCursor, type ListPlace } from "./cursor.ts";
import { type Columns, withNulls } from "./row.ts";
import type { Queries, SqlValue } from "./tables.ts";

/** How entities of one kind lie in the database. */
export interface EntitySpec<Entity extends TableEntity, Row, Filter> {
  /** In camel case. */
  readonly table: string;
  readonly select: (queries: Queries) => RowQuery<Row>;
  /** All values by column, as they are inserted. */
  readonly write: (entity: Entity) => Columns;
  /** Columns that an update leaves alone, beside id, age and revision. */
  readonly fixed: readonly string[];
  readonly read: (row: Row) => Entity;
  /** Conditions by filter field; fields that are undefined are left out. */
  readonly conditions: (filter: Filter) => readonly (Condition | undefined)[];
  /** After an entity was inserted or updated, in the same transaction. */
  readonly onChange?: (queries: Queries, change: EntityChange<Entity>) => Promise<void>;
  /** Before an entity of this id is removed, in the same transaction. */
  readonly onRemove?: (queries: Queries, id: string) => Promise<void>;
}

export interface EntityChange<Entity> {
  /** Undefined when the entity is new. */
  readonly before: Entity | undefined;
  readonly after: Entity;
}

export interface TableEntity {
  readonly id: string;
  readonly createdAt: number;
}

/** The part of a query that lists add to. */
interface RowQuery<Row> {
  where(condition: Expression<SqlBool>): RowQuery<Row>;
  orderBy(column: Expression<unknown>, direction: "desc"): RowQuery<Row>;
  limit(rows: number): RowQuery<Row>;
  execute(): Promise<readonly Row[]>;
  executeTakeFirst(): Promise<Row | undefined>;
}

export interface Condition {
  readonly holds: Expression<SqlBool>;
  /** No index finds the rows that fit: a list looks at so many others, and no more. */
  readonly isScanned?: boolean;
}

/** Rows that a page of a list looks at when an index cannot find those that fit. */
export const scannedRows = 5_000;

/** The condition as one that no index is to be used for. */
export function scanned(condition: Condition | undefined): Condition | undefined {
  return condition && { ...condition, isScanned: true };
}

/** `column = value`, unless the value is undefined. `column` is `table.column`. */
export function equals(column: string, value: SqlValue | undefined): Condition | undefined {
  return value === undefined ? undefined : { holds: sql`${sql.ref(column)} = ${value}` };
}

/** The same, and no index is used for it. */
export function equalsUnindexed(column: string, value: string | undefined): Condition | undefined {
  return value === undefined ? undefined : { holds: sql`${unindexed(column)} = ${value}` };
}

/** The value of a column in a form that no index is used for. */
export function unindexed(column: string): RawBuilder<string | number> {
  const reference = sql.ref(column);
  return sql`coalesce(${reference}, ${reference})`;
}

/** One kind of entity in one transaction. */
export class EntityTable<Entity extends TableEntity, Row, Filter> {
  readonly queries: Queries;
  readonly #spec: EntitySpec<Entity, Row, Filter>;

  constructor(spec: EntitySpec<Entity, Row, Filter>, queries: Queries) {
    this.#spec = spec;
    this.queries = queries;
  }

  get(id: string): Promise<Entity | undefined> {
    return this.findBy({ id });
  }

  async list(filter: Filter, page: PageRequest): Promise<Page<Entity>> {
    const { select, read } = this.#spec;
    const conditions = this.#conditions(filter, page);
    const until = await this.#lastToScan(conditions);
    if (until !== undefined) conditions.push({ holds: sql`${this.#place} >= ${placeOf(until)}` });
    // One row more than the page holds: it tells whether there is a next page.
    const rows = await conditions
      .reduce((query, { holds }) => query.where(holds), select(this.queries))
      .orderBy(this.#column("createdAt"), "desc")
      .orderBy(this.#column("id"), "desc")
      .limit(page.limit + 1)
      .execute();
    const found = toPage(rows.map(read), page.limit, (entity) =>
      encodeCursor({ at: entity.createdAt, id: entity.id }),
    );
    if (until === undefined || found.next !== undefined) return found;
    return { items: found.items, next: encodeCursor(until) };
  }

  async insert(entity: Entity): Promise<void> {
    await this.insertRow(this.#spec.write(entity));
    await this.#spec.onChange?.(this.queries, { before: undefined, after: entity });
  }

  async update(entity: Entity & { readonly revision: number }): Promise<Entity> {
    const { table, fixed, write, onChange } = this.#spec;
    const before = await this.get(entity.id);
    const kept = new Set(["id", "createdAt", "revision", ...fixed]);
    const changed = Object.entries(withNulls(write(entity))).filter(([name]) => !kept.has(name));
    const assignments = changed.map(([name, value]) => sql`${sql.ref(name)} = ${value}`);
    const { numAffectedRows } = await sql`
      update ${sql.table(table)} set revision = revision + 1, ${sql.join(assignments)}
      where id = ${entity.id} and revision = ${entity.revision}`.execute(this.queries);
    if (numAffectedRows === 0n) throw new RevisionConflict(`${entity.id} was changed meanwhile`);
    await onChange?.(this.queries, { before, after: entity });
    const stored = await this.get(entity.id);
    if (stored === undefined) throw new RevisionConflict(`${entity.id} was removed`);
    return stored;
  }

  async delete(id: string): Promise<boolean> {
    const { table, onRemove } = this.#spec;
    await onRemove?.(this.queries, id);
    const removal = sql`delete from ${sql.table(table)} where id = ${id}`;
    return (await removal.execute(this.queries)).numAffectedRows === 1n;
  }

  protected async insertRow(columns: Columns): Promise<void> {
    const row = withNulls(columns);
    const names = Object.keys(row).map((name) => sql.ref(name));
    const insertion = sql`
      insert into ${sql.table(this.#spec.table)} (${sql.join(names)})
      values (${sql.join(Object.values(row))})`;
    await insertion.execute(this.queries);
  }

  /** The entity whose columns have these values. */
  protected async findBy(values: Columns): Promise<Entity | undefined> {
    const { table, select, read } = this.#spec;
    const row = await Object.entries(values)
      .map(([column, value]) => sql<SqlBool>`${sql.ref(`${table}.${column}`)} = ${value}`)
      .reduce((query, condition) => query.where(condition), select(this.queries))
      .executeTakeFirst();
    return row && read(row);
  }

  #conditions(filter: Filter, { after }: PageRequest): Condition[] {
    const all = this.#spec.conditions(filter).filter((condition) => condition !== undefined);
    if (after === undefined) return all;
    return [...all, { holds: sql`${this.#place} < ${placeOf(decodeCursor(after))}` }];
  }

  /** The last row that a page may look at; undefined when an index finds all that fit. */
  async #lastToScan(all: readonly Condition[]): Promise<ListPlace | undefined> {
    const found = all.filter(({ isScanned }) => isScanned !== true);
    if (found.length === all.length) return undefined;
    const conditions = [sql`1 = 1`, ...found.map(({ holds }) => holds)];
    const scan = sql<ListPlace>`
      select created_at as at, id from ${sql.table(this.#spec.table)}
      where ${sql.join(conditions, sql` and `)}
      order by created_at desc, id desc limit 1 offset ${scannedRows - 1}`;
    return (await scan.execute(this.queries)).rows[0];
  }

  #column(name: string): Expression<unknown> {
    return sql.ref(`${this.#spec.table}.${name}`);
  }

  get #place(): Expression<unknown> {
    return sql`(${this.#column("createdAt")}, ${this.#column("id")})`;
  }
}

function placeOf({ at, id }: ListPlace): Expression<unknown> {
  return sql`(${at}, ${id})`;
}

export function toPage<Item>(
  found: readonly Item[],
  limit: number,
  cursorOf: (item: Item) => string,
): Page<Item> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const hasMore = found.length > limit && last !== undefined;
  return { items, next: hasMore ? cursorOf(last) : undefined };
}
