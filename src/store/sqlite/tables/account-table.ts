import type { Database } from "bun:sqlite";
import type { Account } from "../../../domain/accounts/account.ts";
import { isSameValue } from "../../../domain/same-value.ts";
import type { AccountFilter } from "../../control-store.ts";
import { bumpKeys } from "../key-epochs.ts";
import { equals, Table, type TableSpec } from "../table.ts";
import { readLimits, writeLimits, type LimitsColumns } from "./limits-columns.ts";
import { readTexts } from "./text-list.ts";

export interface AccountRow extends LimitsColumns {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  readonly plans: string;
  readonly max_keys: number;
  readonly created_at: number;
  readonly disabled_at: number | null;
  readonly revision: number;
}

export const accountTable: TableSpec<Account, AccountRow, AccountFilter> = {
  table: "accounts",
  fixed: [],
  values: (account) => ({
    id: account.id,
    name: account.name,
    note: account.note,
    plans: JSON.stringify(account.plans),
    max_keys: account.maxKeys,
    ...writeLimits(account.limits),
    created_at: account.createdAt,
    disabled_at: account.disabledAt ?? null,
    revision: account.revision,
  }),
  read: (row) => ({
    id: row.id,
    name: row.name,
    note: row.note,
    plans: readTexts(row.plans),
    maxKeys: row.max_keys,
    limits: readLimits(row),
    createdAt: row.created_at,
    disabledAt: row.disabled_at ?? undefined,
    revision: row.revision,
  }),
  conditions: (filter) => [equals("id", filter.id), equals("name", filter.name)],
  onChange: (database, id, { before, after }) => {
    const isSame =
      before?.disabledAt === after.disabledAt && isSameValue(before?.limits, after.limits);
    if (!isSame) bumpKeys(database, "account_id", id);
  },
};

export class AccountTable extends Table<Account, AccountRow, AccountFilter> {
  markErased(id: string, at: number): Promise<void> {
    return this.scope.run((database) => {
      database
        .query<unknown, [string, number]>("INSERT OR IGNORE INTO erased_accounts VALUES (?, ?)")
        .run(id, at);
    });
  }
}

export function isErased(database: Database, accountId: string): boolean {
  const query = database.query<unknown, [string]>("SELECT 1 FROM erased_accounts WHERE id = ?");
  return query.get(accountId) !== null;
}
