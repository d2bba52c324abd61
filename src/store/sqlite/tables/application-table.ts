import type { Application } from "../../../domain/accounts/account.ts";
import type { Role } from "../../../domain/accounts/user.ts";
import type { ApplicationFilter } from "../../control-store.ts";
import { bumpKeys } from "../key-epochs.ts";
import { equals, type TableSpec } from "../table.ts";

export interface ApplicationRow {
  readonly id: string;
  readonly account_id: string;
  readonly environment: string;
  readonly name: string;
  readonly note: string;
  readonly created_at: number;
  readonly disabled_at: number | null;
  readonly disabled_by: Role | null;
  readonly revision: number;
}

export const applicationTable: TableSpec<Application, ApplicationRow, ApplicationFilter> = {
  table: "applications",
  fixed: ["account_id", "environment"],
  values: (application) => ({
    id: application.id,
    account_id: application.accountId,
    environment: application.environment,
    name: application.name,
    note: application.note,
    created_at: application.createdAt,
    disabled_at: application.disabledAt ?? null,
    disabled_by: application.disabledBy ?? null,
    revision: application.revision,
  }),
  read: (row) => ({
    id: row.id,
    accountId: row.account_id,
    environment: row.environment,
    name: row.name,
    note: row.note,
    createdAt: row.created_at,
    disabledAt: row.disabled_at ?? undefined,
    disabledBy: row.disabled_by ?? undefined,
    revision: row.revision,
  }),
  conditions: (filter) => [
    equals("account_id", filter.accountId),
    equals("environment", filter.environment),
    equals("name", filter.name),
  ],
  onChange: (database, id, { before, after }) => {
    const isSame = before?.disabledAt === after.disabledAt && before?.name === after.name;
    if (!isSame) bumpKeys(database, "application_id", id);
  },
};
