import type { Database } from "bun:sqlite";
import type { Page, PageRequest } from "../control-store.ts";
import { RevisionConflict, StillInUse } from "../errors.ts";
import { decodeCursor, encodeCursor, type ListPlace } from "./cursor.ts";
import type { Scope } from "./connection/scope.ts";
import { breaksConstraint, constraints } from "./connection/sqlite-trouble.ts";

export type SqlValue = string | number | Uint8Array | null;

/** How entities of one kind lie in the database. */
export interface TableSpec<Entity extends TableEntity, Row, Filter> {
  readonly table: string;
  /** `SELECT ... FROM ...`; without it, all columns of the table. */
  readonly select?: string;
  /** All values by column, as they are inserted. */
  readonly values: (entity: Entity) => Readonly<Record<string, SqlValue>>;
  /** Columns that an update leaves alone, beside id, age and revision. */
  readonly fixed: readonly string[];
  readonly read: (row: Row) => Entity;
  /** Conditions by filter field; fields that are undefined are left out. */
  readonly conditions: (filter: Filter) => readonly (Condition | undefined)[];
  /** After an entity of this id was inserted or updated, in the same transaction. */
  readonly onChange?: (database: Database, id: string, change: EntityChange<Entity>) => void;
  /** Before an entity of this id is removed, in the same transaction. */
  readonly onRemove?: (database: Database, id: string) => void;
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

export interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** No index finds the rows that fit: a list looks at so many others, and no more. */
  readonly isScanned?: boolean;
}

/** Rows that a page of a list looks at when an index cannot find those that fit. */
export const scannedRows = 5_000;

/** The condition as one that no index is to be used for. */
export function scanned(condition: Condition | undefined): Condition | undefined {
  return condition === undefined ? undefined : { ...condition, isScanned: true };
}

/** `column = value`, unless the value is undefined. */
export function equals(column: string, value: SqlValue | undefined): Condition | undefined {
  return value === undefined ? undefined : { sql: `${column} = ?`, values: [value] };
}

/** One kind of entity in one transaction. */
export class Table<Entity extends TableEntity, Row, Filter> {
  readonly spec: TableSpec<Entity, Row, Filter>;
  readonly scope: Scope;

  constructor(spec: TableSpec<Entity, Row, Filter>, scope: Scope) {
    this.spec = spec;
    this.scope = scope;
  }

  get(id: string): Promise<Entity | undefined> {
    return this.findBy("id", id);
  }

  list(filter: Filter, page: PageRequest): Promise<Page<Entity>> {
    return this.scope.run((database) => {
      const scan = scanStatement(this.spec, filter, page);
      const last = scan && database.query<ListPlace, SqlValue[]>(scan.sql).get(...scan.values);
      const until = last ?? undefined;
      const { sql, values } = listStatement(this.spec, filter, { ...page, until });
      const rows = database.query<Row, SqlValue[]>(sql).all(...values);
      const found = toPage(rows.map(this.spec.read), page.limit, (entity) =>
        encodeCursor({ at: entity.createdAt, id: entity.id }),
      );
      if (until === undefined || found.next !== undefined) return found;
      return { items: found.items, next: encodeCursor(until) };
    });
  }

  insert(entity: Entity): Promise<void> {
    return this.scope.run((database) => {
      const values = this.spec.values(entity);
      insertRow(database, this.spec.table, values);
      this.spec.onChange?.(database, entity.id, { before: undefined, after: entity });
    });
  }

  async update(entity: Entity & { readonly revision: number }): Promise<Entity> {
    const before = await this.get(entity.id);
    await this.scope.run((database) => {
      const { table, fixed, values, onChange } = this.spec;
      const kept = new Set(["id", "created_at", "revision", ...fixed]);
      const changed = Object.entries(values(entity)).filter(([column]) => !kept.has(column));
      const { changes } = database
        .query<unknown, SqlValue[]>(
          `UPDATE ${table} SET revision = revision + 1,
             ${changed.map(([column]) => `${column} = ?`).join(", ")}
           WHERE id = ? AND revision = ?`,
        )
        .run(...changed.map(([, value]) => value), entity.id, entity.revision);
      if (changes === 0) throw new RevisionConflict(`${entity.id} was changed meanwhile`);
      onChange?.(database, entity.id, { before, after: entity });
    });
    const stored = await this.get(entity.id);
    if (stored === undefined) throw new RevisionConflict(`${entity.id} was removed`);
    return stored;
  }

  delete(id: string): Promise<boolean> {
    return this.scope.run((database) => {
      const { table, onRemove } = this.spec;
      onRemove?.(database, id);
      try {
        const statement = database.query<unknown, [string]>(`DELETE FROM ${table} WHERE id = ?`);
        return statement.run(id).changes > 0;
      } catch (error) {
        if (!breaksConstraint(error, constraints.foreignKey)) throw error;
        throw new StillInUse(`others refer to ${id}`, { cause: error });
      }
    });
  }

  protected findBy(column: string, value: SqlValue): Promise<Entity | undefined> {
    return this.scope.run((database) => {
      const { table } = this.spec;
      const row = database
        .query<Row, [SqlValue]>(`${selectOf(this.spec)} WHERE ${table}.${column} = ?`)
        .get(value);
      return row === null ? undefined : this.spec.read(row);
    });
  }
}

export function insertRow(
  database: Database,
  table: string,
  values: Readonly<Record<string, SqlValue>>,
): void {
  const columns = Object.keys(values);
  database
    .query<unknown, SqlValue[]>(
      `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    )
    .run(...Object.values(values));
}

/** Newest first, and one row more than the page holds: it tells whether there is a next page. */
export function listStatement<Entity extends TableEntity, Row, Filter>(
  spec: TableSpec<Entity, Row, Filter>,
  filter: Filter,
  page: ScannedPage,
): Condition {
  const { table } = spec;
  const conditions = conditionsOf(spec, filter, page);
  if (page.until !== undefined) {
    const { at, id } = page.until;
    conditions.push({ sql: `(${table}.created_at, ${table}.id) >= (?, ?)`, values: [at, id] });
  }
  return {
    sql: `${selectOf(spec)} ${whereAll(conditions)}
      ORDER BY ${table}.created_at DESC, ${table}.id DESC LIMIT ?`,
    values: [...conditions.flatMap(({ values }) => values), page.limit + 1],
  };
}

/** Finds the last row that a page may look at; undefined when an index finds all that fit. */
export function scanStatement<Entity extends TableEntity, Row, Filter>(
  spec: TableSpec<Entity, Row, Filter>,
  filter: Filter,
  page: PageRequest,
): Condition | undefined {
  const { table } = spec;
  const all = conditionsOf(spec, filter, page);
  const found = all.filter(({ isScanned }) => isScanned !== true);
  if (found.length === all.length) return undefined;
  return {
    sql: `SELECT created_at AS at, id FROM ${table} ${whereAll(found)}
      ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?`,
    values: [...found.flatMap(({ values }) => values), scannedRows - 1],
  };
}

interface ScannedPage extends PageRequest {
  /** The last row that is looked at. */
  readonly until?: ListPlace | undefined;
}

function conditionsOf<Entity extends TableEntity, Row, Filter>(
  { table, conditions }: TableSpec<Entity, Row, Filter>,
  filter: Filter,
  { after }: PageRequest,
): Condition[] {
  const all = conditions(filter).filter((condition) => condition !== undefined);
  if (after === undefined) return all;
  const { at, id } = decodeCursor(after);
  return [...all, { sql: `(${table}.created_at, ${table}.id) < (?, ?)`, values: [at, id] }];
}

export function whereAll(conditions: readonly Condition[]): string {
  if (conditions.length === 0) return "";
  return `WHERE ${conditions.map(({ sql }) => `(${sql})`).join(" AND ")}`;
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

function selectOf(spec: { readonly table: string; readonly select?: string }): string {
  return spec.select ?? `SELECT * FROM ${spec.table}`;
}
