import type { Account } from "../../store/entities.ts";
import { randomBase62 } from "../../domain/keys/base62.ts";
import { changeOf } from "../audit/audit-fields.ts";
import type { Change } from "../operation/change.ts";
import {
  accountChangeSchema,
  accountQuerySchema,
  accountSchema,
  changedAccountSchema,
  newAccountSchema,
} from "../contract/accounts.ts";
import { requirePlan } from "../keys/key-rules.ts";
import { disabledSince } from "../keys/key-settings.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { ResourceOperations } from "../operation/resource-operations.ts";
import { maySee, notFound } from "../operation/scope.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import type { AdminServices, Platform } from "../services.ts";
import { entityForm, viewAs } from "../values/api-form.ts";

/** Customers. Operators make and change them; their account holders see their own. */
export function accountOperations(services: AdminServices): readonly Operation[] {
  const accounts = new ResourceOperations(
    {
      kind: "account",
      reads: permissions.read,
      changes: permissions.operate,
      schema: accountSchema,
      changedSchema: changedAccountSchema,
      find: requireAccount,
      show: () => (account) => viewAs(accountSchema, account),
    },
    services,
  );
  return [
    accounts.create({
      id: "createAccount",
      summary: "Create an account",
      description: "Its account holders can issue keys only on the plans listed here.",
      body: newAccountSchema,
      answer: accountSchema,
      run: async ({ changing, body, show }) => {
        checkPlans(body.plans ?? [], services.platform());
        return show(await insertAccount(changing, entityForm(body), services));
      },
    }),
    accounts.list({
      id: "listAccounts",
      summary: "List accounts, newest first",
      query: accountQuerySchema,
      find: ({ view, query: { name }, accountId: id, page }) =>
        view.accounts.list({ id, name }, page),
    }),
    accounts.get({ id: "getAccount", summary: "Show an account" }),
    accounts.update({
      id: "updateAccount",
      summary: "Change an account",
      description: "Absent fields keep their values. Keys of a disabled account are refused.",
      body: accountChangeSchema,
      wanted({ changing, entity, body: { disabled, ...named } }) {
        checkPlans(named.plans ?? [], services.platform());
        const disabledAt = disabledSince(entity, disabled, changing.now);
        return { ...entity, ...entityForm(named), disabledAt };
      },
      store: (transaction, wanted) => transaction.accounts.update(wanted),
    }),
    accounts.delete({
      id: "deleteAccount",
      summary: "Remove an empty account",
      description:
        "Fails while it has applications or users. To remove everything, erase the account.",
      async run({ changing: { transaction, audit }, entity: before }) {
        const budgets = await transaction.budgets.removeOf({ accountId: before.id });
        await transaction.accounts.delete(before.id);
        const entry = changeOf("account", "delete", { before });
        await audit({ ...entry, before: { ...entry.before, budgets } });
      },
    }),
  ];
}

export async function insertAccount(
  { transaction, now, audit }: Change,
  facts: Pick<Account, "name"> & Partial<Account>,
  { random }: Pick<AdminServices, "random">,
): Promise<Account> {
  const account: Account = {
    id: `acct_${randomBase62(16, random)}`,
    note: "",
    plans: [],
    maxKeys: 100,
    limits: undefined,
    timeZone: "UTC",
    ...facts,
    createdAt: now,
    disabledAt: undefined,
    revision: 1,
  };
  await transaction.accounts.insert(account);
  await audit(changeOf("account", "create", { after: account }));
  return account;
}

export async function requireAccount(
  view: ControlView,
  id: string,
  principal: Principal,
): Promise<Account> {
  const account = await view.accounts.get(id);
  if (account === undefined || !maySee(principal, account.id)) throw notFound("account");
  return account;
}

function checkPlans(plans: readonly string[], platform: Platform): void {
  for (const [index, plan] of plans.entries()) requirePlan(platform, plan, `plans[${index}]`);
}
