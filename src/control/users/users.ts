import type { Role } from "../../domain/principal.ts";
import { change } from "../operation/change.ts";
import {
  userSchema,
  newUserSchema,
  userChangeSchema,
  userQuerySchema,
} from "../contract/access.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { ResourceOperations } from "../operation/resource-operations.ts";
import { requireVisible } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { disabledSince } from "../keys/key-settings.ts";
import { deleteUser, insertUser, newUser, updateUser, viewUser } from "../sign-in/keep-user.ts";
import { requireGoodPassword } from "../sign-in/guard/password-rules.ts";
import type { Passwords } from "../sign-in/guard/passwords.ts";
import type { User } from "../../store/entities.ts";

export interface UserServices extends Pick<
  AdminServices,
  "store" | "clock" | "random" | "onKeysChanged"
> {
  readonly passwords: Passwords;
}

/** `/admin/v1/users`: the users and their roles. */
export function userOperations(services: UserServices): readonly Operation[] {
  const users = new ResourceOperations(
    {
      kind: "user",
      reads: permissions.oversee,
      changes: permissions.operate,
      schema: userSchema,
      find: async (view, id, principal) =>
        requireVisible(await view.users.get(id), principal, "user"),
      show: () => viewUser,
    },
    services,
  );
  return [
    createUser(services),
    users.list({
      id: "listUsers",
      summary: "List users, newest first",
      query: userQuerySchema,
      find: ({ view, query: { role, email }, accountId, page }) =>
        view.users.list({ accountId, role, email }, page),
    }),
    users.get({ id: "getUser", summary: "Show a user" }),
    changeUser(services),
    users.delete({
      id: "deleteUser",
      summary: "Remove a user, with their sessions and tokens",
      run: ({ changing, entity }) => deleteUser(changing, entity),
    }),
  ];
}

const path = "/admin/v1/users";
const managing = { resource: "Users", ...permissions.operate };

function createUser(services: UserServices): Operation {
  return defineOperation({
    ...managing,
    id: "createUser",
    method: "POST",
    path,
    summary: "Create a user",
    status: 201,
    body: newUserSchema,
    answer: userSchema,
    async run({ call, body }) {
      const { email, password } = body;
      if (password !== undefined) requireGoodPassword(password, email, "password");
      const passwordHash = password && (await services.passwords.hash(password));
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

function changeUser(services: UserServices): Operation {
  return defineOperation({
    ...managing,
    id: "updateUser",
    method: "PATCH",
    path: `${path}/{id}`,
    summary: "Change a user",
    description:
      "A new role, account or password ends the user's sessions. Disabling also revokes the " +
      "user's tokens. The last enabled operator cannot be demoted or disabled.",
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
      const passwordHash = password && (await services.passwords.hash(password));
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

/** A user that becomes an operator leaves its account implicitly. */
function newAccountId(
  before: User,
  { role, account_id: wanted }: { role?: Role | undefined; account_id?: string | null | undefined },
): string | undefined {
  if (wanted !== undefined) return wanted ?? undefined;
  return role === "operator" ? undefined : before.accountId;
}
