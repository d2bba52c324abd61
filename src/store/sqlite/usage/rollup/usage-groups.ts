import type { Database } from "bun:sqlite";
import type { UsageRecord } from "../../../../domain/usage/usage.ts";
import type { GroupIds } from "../../../repositories/usage/batch-sums.ts";
import { type Detail, details } from "../../../repositories/usage/usage-steps.ts";
import type { ColumnValue } from "../../../repositories/usage/usage-row.ts";

const cacheLimit = 50_000;

// The no-op update makes SQLite return the id of an existing group.
const insertGroup = `
  INSERT INTO usage_groups (detail, environment, account_id, application_id, key_id, model, target,
    status, capacity_class, key_group_id, model_group_id, route_group_id)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET detail = excluded.detail RETURNING id`;

/** Finds or creates the groups of calls. Caches them until another connection writes. */
export class UsageGroups {
  /** Groups by the values that their calls share. */
  readonly #calls = new Map<string, GroupIds>();
  /** Ids by detail and dimensions. */
  readonly #ids = new Map<string, number>();
  #database: Database | undefined;
  #version = 0;

  /** Starts a batch on a database. Needs a transaction. */
  follow(database: Database): void {
    const version = readDataVersion(database);
    // Another connection, such as the command line's, may have removed groups.
    if (database !== this.#database || version !== this.#version) this.forget();
    this.#database = database;
    this.#version = version;
  }

  /** Must be called after a rollback and when groups are removed. */
  forget(): void {
    this.#calls.clear();
    this.#ids.clear();
    this.#database = undefined;
  }

  idsOf(database: Database, record: UsageRecord): GroupIds {
    const name = nameOf(record);
    const known = this.#calls.get(name);
    if (known !== undefined) return known;
    if (this.#calls.size >= cacheLimit) this.#calls.clear();
    const ids = this.#findGroups(database, record);
    this.#calls.set(name, ids);
    return ids;
  }

  #findGroups(database: Database, record: UsageRecord): GroupIds {
    const { environment, accountId, applicationId, keyId, model, target, status } = record;
    const query = database.query<{ id: number }, ColumnValue[]>(insertGroup);
    const find = (detail: Detail, dimensions: ColumnValue[], wholes: ColumnValue[]): number => {
      const values = [details[detail], environment, accountId, ...dimensions];
      const name = JSON.stringify(values);
      const known = this.#ids.get(name);
      if (known !== undefined) return known;
      if (this.#ids.size >= cacheLimit) this.#ids.clear();
      const row = query.get(...values, ...wholes);
      if (row === null) throw new Error("a group of usage has no id");
      this.#ids.set(name, row.id);
      return row.id;
    };
    const none = [null, null, null];
    const route = [target ?? "", status, record.capacityClass];
    const key = find("key", [applicationId, keyId, "", "", 0, ""], none);
    const ofModel = find("model", ["", "", model, "", 0, ""], none);
    const ofRoute = find("route", ["", "", "", ...route], none);
    const own = [applicationId, keyId, model, ...route];
    const full = find("full", own, [key, ofModel, ofRoute]);
    return { full, key, model: ofModel, route: ofRoute };
  }
}

function readDataVersion(database: Database): number {
  const row = database.query<{ data_version: number }, []>("PRAGMA data_version").get();
  return row?.data_version ?? 0;
}

function nameOf(record: UsageRecord): string {
  // The key comes first, as it distinguishes most groups. No name contains a line break.
  return `${record.keyId}\n${record.model}\n${record.status}\n${record.target ?? ""}\n${
    record.capacityClass
  }\n${record.applicationId}\n${record.accountId}\n${record.environment}`;
}
