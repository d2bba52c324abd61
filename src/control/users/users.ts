import type { Role, User } from "../../domain/accounts/user.ts";
import { change } from "../operation/change.ts";
import { userSchema } from "../contract/access.ts";
import { newUserSchema, userChangeSchema, userQuerySchema } from "../contract/access-requests.ts";
import { listOf, removedSchema } from "../contract/values.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { emptyList, listAnswer, pageRequest } from "../operation/list-page.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { listScope, requireVisible } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { disabledSince } from "../keys/key-settings.ts";
import { deleteUser, insertUser, newUser, updateUser } from "../sign-in/keep-user.ts";
import { requireGoodPassword } from "../sign-in/guard/password-rules.ts";
import type { Passwords } from "../sign-in/guard/passwords.ts";
import { viewUser } from "./view-user.ts";

export interface UserServices extends Pick<
  AdminServices,
  "store" | "clock" | "random" | "onKeysChanged"
> {
  readonly passwords: Passwords;
}

/** `/admin/v1/users`: the users and their roles. */
export function userOperations(services: UserServices): readonly Operation[] {
  return [
    createOperation(services),
    listOperation(services),
    getOperation(services),
    changeOperation(services),
    deleteOperation(services),
  ];
}

const path = "/admin/v1/users";
const onePath = `${path}/{id}`;
const managing = { resource: "Users", ...permissions.operate };
const reading = { resource: "Users", ...permissions.oversee };

function createOperation(services: UserServices): Operation {
  return defineOperation({
    ...managing,
    id: "createUser",
    method: "POST",
    path,
    summary: "Let somebody sign in.",
    status: 201,
    body: newUserSchema,
    answer: userSchema,
    async run({ call, body }) {
      const { email, password } = body;
      if (password !== undefined) requireGoodPassword(password, email, "password");
      const passwordHash = password && (await services.passwords.hash(password, call.signal));
      return change(services, call, async (made) => {
        const { name = "", role, account_id: accountId } = body;
        const facts = { email, name, role, accountId: accountId ?? undefined, passwordHash };
        const user = newUser(facts, made.now, services.random);
        await insertUser(made, user);
        return viewUser(user);
      });
    },
  });
}

function listOperation(services: UserServices): Operation {
  return defineOperation({
    ...reading,
    id: "listUsers",
    method: "GET",
    path,
    summary: "Who may sign in, newest first.",
    status: 200,
    query: userQuerySchema,
    answer: listOf(userSchema),
    async run({ call, query }) {
      const scope = listScope(call.principal, query.account_id);
      if (scope.isEmpty) return emptyList;
      const { role, email } = query;
      const filter = { accountId: scope.accountId, role, email };
      const request = pageRequest(query);
      const page = await services.store.read((view) => view.users.list(filter, request));
      return listAnswer(page, viewUser);
    },
  });
}

function getOperation(services: UserServices): Operation {
  return defineOperation({
    ...reading,
    id: "getUser",
    method: "GET",
    path: onePath,
    summary: "One user.",
    status: 200,
    answer: userSchema,
    async run({ call, parameters }) {
      const user = await services.store.read((view) => view.users.get(parameters.id ?? ""));
      return viewUser(requireVisible(user, call.principal, "user"));
    },
  });
}

function changeOperation(services: UserServices): Operation {
  return defineOperation({
    ...managing,
    id: "updateUser",
    method: "PATCH",
    path: onePath,
    summary: "Change a user.",
    description:
      "A new role, account or password, and disabling, end the user's sessions; disabling also " +
      "revokes the user's tokens. The last enabled operator stays one.",
    status: 200,
    body: userChangeSchema,
    answer: userSchema,
    async run({ call, parameters, body }) {
      const id = parameters.id ?? "";
      const { password } = body;
      if (password !== undefined) {
        const found = await services.store.read((view) => view.users.get(id));
        const { email } = requireVisible(found, call.principal, "user");
        requireGoodPassword(password, email, "password");
      }
      const passwordHash = password && (await services.passwords.hash(password, call.signal));
      return change(services, call, async (made) => {
        const found = await made.transaction.users.get(id);
        const before = requireVisible(found, call.principal, "user");
        const wanted: User = {
          ...before,
          name: body.name ?? before.name,
          role: body.role ?? before.role,
          accountId: newAccountId(before, body),
          passwordHash: passwordHash ?? before.passwordHash,
          disabledAt: disabledSince(before, body.disabled, made.now),
          revision: body.revision,
        };
        return viewUser(await updateUser(made, before, wanted));
      });
    },
  });
}

function deleteOperation(services: UserServices): Operation {
  return defineOperation({
    ...managing,
    id: "deleteUser",
    method: "DELETE",
    path: onePath,
    summary: "Remove a user, with sessions and tokens.",
    status: 200,
    answer: removedSchema,
    run({ call, parameters }) {
      return change(services, call, async (made) => {
        const found = await made.transaction.users.get(parameters.id ?? "");
        const user = requireVisible(found, call.principal, "user");
        await deleteUser(made, user);
        return { id: user.id, deleted: true as const };
      });
    },
  });
}

/** A user that becomes an operator leaves its account implicitly. */
function newAccountId(
  before: User,
  { role, account_id: wanted }: { role?: Role | undefined; account_id?: string | null | undefined },
): string | undefined {
  if (wanted !== undefined) return wanted ?? undefined;
  return role === "operator" ? undefined : before.accountId;
}
