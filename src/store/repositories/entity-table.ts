import { type Expression, type RawBuilder, type SqlBool, sql } from "kysely";
import type { Page, PageRequest } from "../control-store.ts";
import { RevisionConflict } from "../errors.ts";
import { decodeCursor, encodeCursor, type ListPosition } from "./cursor.ts";
import { type Columns, withNulls } from "./row.ts";
import type { Queries, SqlValue } from "./tables.ts";

/** How entities of one kind are stored. */
export interface EntitySpec<Entity extends TableEntity, Row, Filter> {
  /** In camel case. */
  readonly table: string;
  readonly select: (queries: Queries) => RowQuery<Row>;
  /** All inserted values by column. */
  readonly write: (entity: Entity) => Columns;
  /** Columns that an update does not change, besides id, creation time and revision. */
  readonly fixed: readonly string[];
  readonly read: (row: Row) => Entity;
  /** Conditions by filter field; undefined fields are skipped. */
  readonly conditions: (filter: Filter) => readonly (Condition | undefined)[];
  /** Called after an entity was inserted or updated, in the same transaction. */
  readonly onChange?: (queries: Queries, change: EntityChange<Entity>) => Promise<void>;
  /** Called before an entity is removed, in the same transaction. */
  readonly onRemove?: (queries: Queries, id: string) => Promise<void>;
}

export interface EntityChange<Entity> {
  /** Undefined for a new entity. */
  readonly before: Entity | undefined;
  readonly after: Entity;
}

export interface TableEntity {
  readonly id: string;
  readonly createdAt: number;
}

/** The part of a query that lists extend. */
interface RowQuery<Row> {
  where(condition: Expression<SqlBool>): RowQuery<Row>;
  orderBy(column: Expression<unknown>, direction: "desc"): RowQuery<Row>;
  limit(rows: number): RowQuery<Row>;
  execute(): Promise<readonly Row[]>;
  executeTakeFirst(): Promise<Row | undefined>;
}

export interface Condition {
  readonly holds: Expression<SqlBool>;
  /** Set when no index finds matching rows: the most rows that a page scans. */
  readonly isScanned?: boolean;
}

/** Rows that a page scans when no index finds the matching ones. */
export const scannedRows = 5_000;

/** Marks a condition as one that no index serves. */
export function scanned(condition: Condition | undefined): Condition | undefined {
  return condition && { ...condition, isScanned: true };
}

/** `column = value`, unless the value is undefined. `column` is `table.column`. */
export function equals(column: string, value: SqlValue | undefined): Condition | undefined {
  return value === undefined ? undefined : { holds: sql`${sql.ref(column)} = ${value}` };
}

/** The same without using an index. */
export function equalsUnindexed(column: string, value: string | undefined): Condition | undefined {
  return value === undefined ? undefined : { holds: sql`${unindexed(column)} = ${value}` };
}

/** The value of a column in a form that keeps the planner from using an index. */
export function unindexed(column: string): RawBuilder<string | number> {
  const reference = sql.ref(column);
  return sql`coalesce(${reference}, ${reference})`;
}

/** Entities of one kind in one transaction. */
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

  /**
   * Newest first, matching every field of the filter. When matches are rare, a page may be short or
   * even empty and still name a next one.
   */
  async list(filter: Filter, page: PageRequest): Promise<Page<Entity>> {
    const { select, read } = this.#spec;
    const conditions = this.#conditions(filter, page);
    const until = await this.#lastToScan(conditions);
    if (until !== undefined) {
      conditions.push({ holds: sql`${this.#position} >= ${positionOf(until)}` });
    }
    // One extra row shows whether there is a next page.
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

  /** Throws `AlreadyExists` when the id or a unique name is taken. */
  async insert(entity: Entity): Promise<void> {
    await this.insertRow(this.#spec.write(entity));
    await this.#spec.onChange?.(this.queries, { before: undefined, after: entity });
  }

  /**
   * Replaces the entity of this id and increments its revision; `entity.revision` must be the
   * stored one. Returns the entity as stored. Throws `RevisionConflict`, `AlreadyExists`.
   */
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

  /** False when there is none. Throws `StillInUse` while others refer to it. */
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
    return [...all, { holds: sql`${this.#position} < ${positionOf(decodeCursor(after))}` }];
  }

  /** The last row that a page may scan; undefined when an index finds all matches. */
  async #lastToScan(all: readonly Condition[]): Promise<ListPosition | undefined> {
    const found = all.filter(({ isScanned }) => isScanned !== true);
    if (found.length === all.length) return undefined;
    const conditions = [sql`1 = 1`, ...found.map(({ holds }) => holds)];
    const scan = sql<ListPosition>`
      select created_at as at, id from ${sql.table(this.#spec.table)}
      where ${sql.join(conditions, sql` and `)}
      order by created_at desc, id desc limit 1 offset ${scannedRows - 1}`;
    return (await scan.execute(this.queries)).rows[0];
  }

  #column(name: string): Expression<unknown> {
    return sql.ref(`${this.#spec.table}.${name}`);
  }

  get #position(): Expression<unknown> {
    return sql`(${this.#column("createdAt")}, ${this.#column("id")})`;
  }
}

function positionOf({ at, id }: ListPosition): Expression<unknown> {
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
