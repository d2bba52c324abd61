import type { Account } from "../../entities.ts";
import { isSameValue } from "../../../domain/json-object.ts";
import { type EntitySpec, EntityTable, equals } from "../entity-table.ts";
import { present, readLimits, readTexts, writeLimits } from "../row.ts";
import type { AccountRow, Queries } from "../tables.ts";
import { bumpKeys } from "./key-epochs.ts";

interface AccountFilter {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
}

const spec: EntitySpec<Account, AccountRow, AccountFilter> = {
  table: "accounts",
  select: (queries) => queries.selectFrom("accounts").selectAll(),
  fixed: [],
  write: ({ plans, limits, ...columns }) => ({
    ...columns,
    plans: JSON.stringify(plans),
    ...writeLimits(limits),
  }),
  read: ({ requestsPerMinute, tokensPerMinute, plans, ...row }) => ({
    ...present(row),
    plans: readTexts(plans),
    limits: readLimits({ requestsPerMinute, tokensPerMinute }),
  }),
  conditions: ({ id, name }) => [equals("accounts.id", id), equals("accounts.name", name)],
  onChange: async (queries, { before, after }) => {
    const isSame =
      before?.disabledAt === after.disabledAt && isSameValue(before?.limits, after.limits);
    if (!isSame) await bumpKeys(queries, "accountId", after.id);
  },
};

export class Accounts extends EntityTable<Account, AccountRow, AccountFilter> {
  constructor(queries: Queries) {
    super(spec, queries);
  }

  /** From now on, refuses all calls of the account, including those still to be stored. */
  async markErased(id: string, at: number): Promise<void> {
    const { queries } = this;
    const insertion = queries.insertInto("erasedAccounts").values({ id, at });
    await insertion.onConflict((conflict) => conflict.doNothing()).execute();
  }
}

export async function isErased(queries: Queries, accountId: string): Promise<boolean> {
  const query = queries.selectFrom("erasedAccounts").select("id").where("id", "=", accountId);
  return (await query.executeTakeFirst()) !== undefined;
}
