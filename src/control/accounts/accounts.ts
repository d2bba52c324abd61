import type { Account } from "../../domain/accounts/account.ts";
import { randomBase62 } from "../../domain/keys/base62.ts";
import { isSameValue } from "../../domain/same-value.ts";
import { changeOf } from "../audit/audit-fields.ts";
import { change } from "../operation/change.ts";
import {
  accountChangeSchema,
  accountQuerySchema,
  accountSchema,
  newAccountSchema,
  type AccountView,
} from "../contract/accounts.ts";
import { listOf, removedSchema } from "../contract/values.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { requireRevision } from "../keys/key-access.ts";
import { requirePlan } from "../keys/key-rules.ts";
import { disabledSince } from "../keys/key-settings.ts";
import { listAnswer, pageRequest } from "../operation/list-page.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { maySee, notFound } from "../operation/scope.ts";
import type { Principal } from "../../domain/accounts/user.ts";
import type { ControlView } from "../../store/control-store.ts";
import type { AdminServices, Platform } from "../services.ts";
import { entityForm, viewAs } from "../values/api-form.ts";

/** Defaults of a new account. */
export const newAccount = {
  note: "",
  plans: [],
  maxKeys: 100,
  limits: undefined,
  disabledAt: undefined,
  revision: 1,
} satisfies Partial<Account>;

/** Customers. Operators make and change them; their account holders see their own. */
export function accountOperations(services: AdminServices): readonly Operation[] {
  return [
    createAccount(services),
    listAccounts(services),
    getAccount(services),
    updateAccount(services),
    deleteAccount(services),
  ];
}

function createAccount(services: AdminServices): Operation {
  return defineOperation({
    id: "createAccount",
    method: "POST",
    path: "/admin/v1/accounts",
    resource: "Accounts",
    summary: "Make an account",
    description: "Its account holders issue keys on the plans named here, and on no others.",
    ...permissions.operate,
    status: 201,
    body: newAccountSchema,
    answer: accountSchema,
    run: ({ call, body }) =>
      change(services, call, async (changing) => {
        checkPlans(body.plans ?? [], services.platform());
        const account: Account = {
          id: `acct_${randomBase62(16, services.random)}`,
          ...newAccount,
          ...entityForm(body),
          createdAt: changing.now,
        };
        await changing.transaction.accounts.insert(account);
        await changing.audit(changeOf("account", "create", { after: account }));
        return viewAccount(account);
      }),
  });
}

function listAccounts({ store }: AdminServices): Operation {
  return defineOperation({
    id: "listAccounts",
    method: "GET",
    path: "/admin/v1/accounts",
    resource: "Accounts",
    summary: "List accounts, newest first",
    ...permissions.read,
    status: 200,
    query: accountQuerySchema,
    answer: listOf(accountSchema),
    run: ({ call, query }) =>
      store.read(async (view) => {
        const filter = { id: call.principal.accountId, name: query.name };
        return listAnswer(await view.accounts.list(filter, pageRequest(query)), viewAccount);
      }),
  });
}

function getAccount({ store }: AdminServices): Operation {
  return defineOperation({
    id: "getAccount",
    method: "GET",
    path: "/admin/v1/accounts/{id}",
    resource: "Accounts",
    summary: "Show an account",
    ...permissions.read,
    status: 200,
    answer: accountSchema,
    run: ({ call, parameters }) =>
      store.read(async (view) =>
        viewAccount(await requireAccount(view, parameters, call.principal)),
      ),
  });
}

function updateAccount(services: AdminServices): Operation {
  return defineOperation({
    id: "updateAccount",
    method: "PATCH",
    path: "/admin/v1/accounts/{id}",
    resource: "Accounts",
    summary: "Change an account",
    description: "Fields that are absent stay. Keys of a disabled account are refused.",
    ...permissions.operate,
    status: 200,
    body: accountChangeSchema,
    answer: accountSchema,
    run: ({ call, parameters, body }) =>
      change(services, call, async (changing) => {
        const before = await requireAccount(changing.transaction, parameters, call.principal);
        requireRevision(before, body.revision);
        if (body.plans !== undefined) checkPlans(body.plans, services.platform());
        const { disabled, ...named } = body;
        const disabledAt = disabledSince(before, disabled, changing.now);
        const wanted: Account = { ...before, ...entityForm(named), disabledAt };
        if (isSameValue(before, wanted)) return viewAccount(before);
        const after = await changing.transaction.accounts.update(wanted);
        changing.touchesKeys();
        await changing.audit(changeOf("account", "update", { before, after }));
        return viewAccount(after);
      }),
  });
}

function deleteAccount(services: AdminServices): Operation {
  return defineOperation({
    id: "deleteAccount",
    method: "DELETE",
    path: "/admin/v1/accounts/{id}",
    resource: "Accounts",
    summary: "Remove an account that has nothing",
    description: "Refused while it has applications or users; see also the erasure of an account.",
    ...permissions.operate,
    status: 200,
    answer: removedSchema,
    run: ({ call, parameters }) =>
      change(services, call, async (changing) => {
        const before = await requireAccount(changing.transaction, parameters, call.principal);
        await changing.transaction.accounts.delete(before.id);
        await changing.audit(changeOf("account", "delete", { before }));
        return { id: before.id, deleted: true };
      }),
  });
}

/** The account of the path, if the principal may see it. */
export async function requireAccount(
  view: ControlView,
  parameters: Readonly<Record<string, string>>,
  principal: Principal,
): Promise<Account> {
  const account = await view.accounts.get(parameters["id"] ?? "");
  if (account === undefined || !maySee(principal, account.id)) throw notFound("account");
  return account;
}

function checkPlans(plans: readonly string[], platform: Platform): void {
  for (const [index, plan] of plans.entries()) requirePlan(platform, plan, `plans[${index}]`);
}

function viewAccount(account: Account): AccountView {
  return viewAs(accountSchema, account);
}
