import type { Application } from "../../store/entities.ts";
import { randomBase62 } from "../../domain/keys/base62.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ControlTransaction, ControlView } from "../../store/repositories/control-store.ts";
import { changeOf } from "../audit/audit-fields.ts";
import type { Change } from "../operation/change.ts";
import {
  applicationChangeSchema,
  applicationQuerySchema,
  applicationSchema,
  changedApplicationSchema,
  newApplicationSchema,
} from "../contract/accounts.ts";
import { requireEnvironment } from "../keys/key-rules.ts";
import { disablingAfter, maySee, notFound, requireVisible } from "../operation/scope.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { requireKnownNames } from "../operation/known-names.ts";
import { ResourceOperations } from "../operation/resource-operations.ts";
import type { AdminServices } from "../services.ts";
import { entityForm, viewAs } from "../values/api-form.ts";
import { readAccountNames } from "../values/read-once.ts";

/** Programs of an account in an environment, which keys are issued to. */
export function applicationOperations(services: AdminServices): readonly Operation[] {
  const applications = new ResourceOperations(
    {
      kind: "application",
      reads: permissions.read,
      changes: permissions.manage,
      schema: applicationSchema,
      changedSchema: changedApplicationSchema,
      find: async (view, id, principal) =>
        requireVisible(await view.applications.get(id), principal, "application"),
      show: showApplications,
    },
    services,
  );
  return [
    applications.create({
      id: "createApplication",
      summary: "Create an application",
      body: newApplicationSchema,
      answer: applicationSchema,
      run: async ({ changing, call, body, show }) => {
        const accountId = ownerOf(body.account_id, call.principal);
        const { accounts } = changing.transaction;
        if ((await accounts.get(accountId)) === undefined) throw notFound("account");
        requireEnvironment(services.platform(), body.environment);
        const facts = { ...entityForm(body), accountId };
        return show(await insertApplication(changing, facts, services));
      },
    }),
    applications.list({
      id: "listApplications",
      summary: "List applications, newest first",
      query: applicationQuerySchema,
      async find({ view, query: { environment, name }, accountId, page }) {
        const found = await view.applications.list({ accountId, environment, name }, page);
        if (found.items.length === 0) requireKnownNames(services.platform(), { environment });
        return found;
      },
    }),
    applications.get({ id: "getApplication", summary: "Show an application" }),
    applications.update({
      id: "updateApplication",
      summary: "Change an application",
      description: "Absent fields keep their values. Keys of a disabled application are refused.",
      body: applicationChangeSchema,
      wanted({ changing: { now }, call: { principal }, entity, body: { disabled, ...named } }) {
        const disabling = disablingAfter(entity, { disabled, principal, now });
        return { ...entity, ...entityForm(named), ...disabling };
      },
      store: (transaction, wanted) => transaction.applications.update(wanted),
    }),
    applications.delete({
      id: "deleteApplication",
      summary: "Remove an application",
      description:
        "Fails until all its keys are revoked. Revoked keys and its budgets are removed with it.",
      async run({ changing: { transaction, audit }, entity: before }) {
        const budgets = await transaction.budgets.removeOf({ applicationId: before.id });
        const keys = await removeRevokedKeys(transaction, before.id);
        await transaction.applications.delete(before.id);
        const entry = changeOf("application", "delete", { before });
        await audit({ ...entry, before: { ...entry.before, keys, budgets } });
      },
    }),
  ];
}

export async function insertApplication(
  { transaction, now, audit }: Change,
  facts: Pick<Application, "accountId" | "environment" | "name"> & Partial<Application>,
  { random }: Pick<AdminServices, "random">,
): Promise<Application> {
  const application: Application = {
    id: `app_${randomBase62(16, random)}`,
    note: "",
    ...facts,
    createdAt: now,
    disabledAt: undefined,
    disabledBy: undefined,
    revision: 1,
  };
  await transaction.applications.insert(application);
  await audit(changeOf("application", "create", { after: application }));
  return application;
}

/** Looks up the account of each once. */
function showApplications(view: Pick<ControlView, "accounts">) {
  const accountName = readAccountNames(view);
  return async (application: Application) => {
    const account = await accountName(application.accountId);
    return viewAs(applicationSchema, application, { account });
  };
}

/** The account of something new. Throws 400 and 404. */
export function ownerOf(
  wanted: string | undefined,
  principal: Principal,
  whatToName = "name the one it is for",
): string {
  const accountId = wanted ?? principal.accountId;
  if (accountId === undefined) {
    throw new GatewayError("missing_required_parameter", {
      message: `Missing required parameter: 'account_id'. You can see all accounts, so ${whatToName}.`,
      param: "account_id",
    });
  }
  if (!maySee(principal, accountId)) throw notFound("account");
  return accountId;
}

/** Ids of the removed keys. */
async function removeRevokedKeys(
  transaction: ControlTransaction,
  applicationId: string,
): Promise<readonly string[]> {
  const removed: string[] = [];
  let after: string | undefined;
  do {
    const page = await transaction.keys.list({ applicationId }, { limit: 200, after });
    for (const key of page.items) {
      if (key.revokedAt === undefined) {
        throw new GatewayError("still_in_use", {
          message: `Key ${key.id} is not revoked. Revoke the application's keys first.`,
        });
      }
      await transaction.keys.delete(key.id);
      removed.push(key.id);
    }
    after = page.next;
  } while (after !== undefined);
  return removed;
}
