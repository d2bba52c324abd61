import type { Application } from "../../domain/accounts/account.ts";
import { randomBase62 } from "../../domain/keys/base62.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isSameValue } from "../../domain/same-value.ts";
import type { Principal } from "../../domain/accounts/user.ts";
import type { ControlTransaction, ControlView } from "../../store/control-store.ts";
import { changeOf } from "../audit/audit-fields.ts";
import { change } from "../operation/change.ts";
import {
  applicationChangeSchema,
  applicationQuerySchema,
  applicationSchema,
  newApplicationSchema,
  type ApplicationView,
} from "../contract/accounts.ts";
import { listOf, removedSchema } from "../contract/values.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { requireRevision } from "../keys/key-access.ts";
import { requireEnvironment } from "../keys/key-rules.ts";
import { disablingAfter } from "./disabling.ts";
import { emptyList, listAnswer, pageRequest } from "../operation/list-page.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { listScope, maySee, notFound, requireVisible } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { entityForm, viewAs } from "../values/api-form.ts";

/** Defaults of a new application. */
export const newApplication = {
  note: "",
  disabledAt: undefined,
  disabledBy: undefined,
  revision: 1,
} satisfies Partial<Application>;

/** Programs of an account in an environment, which keys are issued to. */
export function applicationOperations(services: AdminServices): readonly Operation[] {
  return [
    createApplication(services),
    listApplications(services),
    getApplication(services),
    updateApplication(services),
    deleteApplication(services),
  ];
}

function createApplication(services: AdminServices): Operation {
  return defineOperation({
    id: "createApplication",
    method: "POST",
    path: "/admin/v1/applications",
    resource: "Applications",
    summary: "Make an application",
    ...permissions.manage,
    status: 201,
    body: newApplicationSchema,
    answer: applicationSchema,
    run: ({ call, body }) =>
      change(services, call, async (changing) => {
        const accountId = ownerOf(body.account_id, call.principal);
        const { transaction } = changing;
        if ((await transaction.accounts.get(accountId)) === undefined) throw notFound("account");
        requireEnvironment(services.platform(), body.environment);
        const application: Application = {
          id: `app_${randomBase62(16, services.random)}`,
          ...newApplication,
          ...entityForm(body),
          accountId,
          createdAt: changing.now,
        };
        await transaction.applications.insert(application);
        await changing.audit(changeOf("application", "create", { after: application }));
        return viewApplication(application);
      }),
  });
}

function ownerOf(wanted: string | undefined, principal: Principal): string {
  const accountId = wanted ?? principal.accountId;
  if (accountId === undefined) {
    throw new GatewayError("missing_required_parameter", {
      message:
        "Missing required parameter: 'account_id'. You see all accounts: say which it is for.",
      param: "account_id",
    });
  }
  if (!maySee(principal, accountId)) throw notFound("account");
  return accountId;
}

function listApplications({ store }: AdminServices): Operation {
  return defineOperation({
    id: "listApplications",
    method: "GET",
    path: "/admin/v1/applications",
    resource: "Applications",
    summary: "List applications, newest first",
    ...permissions.read,
    status: 200,
    query: applicationQuerySchema,
    answer: listOf(applicationSchema),
    run: ({ call, query }) =>
      store.read(async (view) => {
        const scope = listScope(call.principal, query.account_id);
        if (scope.isEmpty) return emptyList;
        const { environment, name } = query;
        const filter = { accountId: scope.accountId, environment, name };
        const page = await view.applications.list(filter, pageRequest(query));
        return listAnswer(page, viewApplication);
      }),
  });
}

function getApplication({ store }: AdminServices): Operation {
  return defineOperation({
    id: "getApplication",
    method: "GET",
    path: "/admin/v1/applications/{id}",
    resource: "Applications",
    summary: "Show an application",
    ...permissions.read,
    status: 200,
    answer: applicationSchema,
    run: ({ call, parameters }) =>
      store.read(async (view) =>
        viewApplication(await requireApplication(view, parameters, call.principal)),
      ),
  });
}

function updateApplication(services: AdminServices): Operation {
  return defineOperation({
    id: "updateApplication",
    method: "PATCH",
    path: "/admin/v1/applications/{id}",
    resource: "Applications",
    summary: "Change an application",
    description: "Fields that are absent stay. Keys of a disabled application are refused.",
    ...permissions.manage,
    status: 200,
    body: applicationChangeSchema,
    answer: applicationSchema,
    run: ({ call, parameters, body }) =>
      change(services, call, async (changing) => {
        const { transaction, now } = changing;
        const { principal } = call;
        const before = await requireApplication(transaction, parameters, call.principal);
        requireRevision(before, body.revision);
        const { disabled, ...named } = body;
        const disabling = disablingAfter(before, { disabled, principal, now });
        const wanted: Application = { ...before, ...entityForm(named), ...disabling };
        if (isSameValue(before, wanted)) return viewApplication(before);
        const after = await transaction.applications.update(wanted);
        changing.touchesKeys();
        await changing.audit(changeOf("application", "update", { before, after }));
        return viewApplication(after);
      }),
  });
}

function deleteApplication(services: AdminServices): Operation {
  return defineOperation({
    id: "deleteApplication",
    method: "DELETE",
    path: "/admin/v1/applications/{id}",
    resource: "Applications",
    summary: "Remove an application",
    description: "Refused while one of its keys is not revoked; revoked keys go with it.",
    ...permissions.manage,
    status: 200,
    answer: removedSchema,
    run: ({ call, parameters }) =>
      change(services, call, async (changing) => {
        const { transaction } = changing;
        const before = await requireApplication(transaction, parameters, call.principal);
        const keys = await removeRevokedKeys(transaction, before.id);
        await transaction.applications.delete(before.id);
        const entry = changeOf("application", "delete", { before });
        await changing.audit({ ...entry, before: { ...entry.before, keys } });
        return { id: before.id, deleted: true };
      }),
  });
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

async function requireApplication(
  view: ControlView,
  parameters: Readonly<Record<string, string>>,
  principal: Principal,
): Promise<Application> {
  const application = await view.applications.get(parameters["id"] ?? "");
  return requireVisible(application, principal, "application");
}

function viewApplication(application: Application): ApplicationView {
  return viewAs(applicationSchema, application);
}
