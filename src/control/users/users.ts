import type { Role } from "../../domain/principal.ts";
import {
  userSchema,
  newUserSchema,
  userChangeSchema,
  newLinkSchema,
  issuedLinkSchema,
  userQuerySchema,
  type UserView,
} from "../contract/access.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { ResourceOperations } from "../operation/resource-operations.ts";
import { wrongState } from "../operation/refusals.ts";
import { insertLink } from "../sign-in/links.ts";
import { timeText } from "../values/api-form.ts";
import { readAccountNames } from "../values/read-once.ts";
import { requireVisible } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { disabledSince } from "../keys/key-settings.ts";
import { deleteUser, insertUser, newUser, updateUser, viewUser } from "../sign-in/keep-user.ts";
import { requireGoodPassword } from "../sign-in/guard/password-rules.ts";
import type { Passwords } from "../sign-in/guard/passwords.ts";
import type { User } from "../../store/entities.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";

export interface UserServices extends Pick<
  AdminServices,
  "store" | "clock" | "random" | "onKeysChanged"
> {
  readonly passwords: Passwords;
  /** The admin listener's address for browsers, without a slash at its end. */
  readonly publicUrl: () => string;
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
      show: showUsers,
    },
    services,
  );
  const hash: Hash = async (password) =>
    password === undefined ? undefined : services.passwords.hash(password);
  return [
    users.create({
      id: "createUser",
      summary: "Create a user",
      body: newUserSchema,
      answer: userSchema,
      prepare({ email, password }) {
        if (password !== undefined) requireGoodPassword(password, email, "password");
        return hash(password);
      },
      async run({ changing, body, show, ready: passwordHash }) {
        const { email, name = "", role, account_id: accountId } = body;
        const facts = { email, name, role, accountId: accountId ?? undefined, passwordHash };
        const user = newUser(facts, changing.now, services.random);
        await insertUser(changing, user);
        return show(user);
      },
    }),
    users.list({
      id: "listUsers",
      summary: "List users, newest first",
      query: userQuerySchema,
      find: ({ view, query: { role, email }, accountId, page }) =>
        view.users.list({ accountId, role, email }, page),
    }),
    users.get({ id: "getUser", summary: "Show a user" }),
    changeUser(users, hash),
    createLink(users, services),
    users.delete({
      id: "deleteUser",
      summary: "Remove a user, with their sessions and tokens",
      run: ({ changing, entity }) => deleteUser(changing, entity),
    }),
  ];
}

/** With the names of their accounts; each is read once. */
function showUsers(view: ControlView): (user: User) => Promise<UserView> {
  const accountName = readAccountNames(view);
  return async (user) => {
    const { accountId: id } = user;
    return { ...viewUser(user), account: id === undefined ? null : await accountName(id) };
  };
}

type Hash = (password: string | undefined) => Promise<string | undefined>;

function changeUser(users: ResourceOperations<"user", UserView>, hash: Hash): Operation {
  return users.change({
    id: "updateUser",
    method: "PATCH",
    summary: "Change a user",
    description:
      "A new role, account or password ends the user's sessions. Disabling also revokes the " +
      "user's tokens. The last enabled operator cannot be demoted or disabled.",
    body: userChangeSchema,
    answer: userSchema,
    prepare: ({ password }) => hash(password),
    async run({ changing, body, entity: before, show, ready: passwordHash }) {
      const { password } = body;
      if (password !== undefined) requireGoodPassword(password, before.email, "password");
      const wanted: User = {
        ...before,
        name: body.name ?? before.name,
        role: body.role ?? before.role,
        accountId: newAccountId(before, body),
        passwordHash: passwordHash ?? before.passwordHash,
        disabledAt: disabledSince(before, body.disabled, changing.now),
        revision: body.revision,
      };
      return show(await updateUser(changing, before, wanted));
    },
  });
}

function createLink(
  users: ResourceOperations<"user", UserView>,
  services: UserServices,
): Operation {
  return users.change({
    id: "createSignInLink",
    method: "POST",
    below: "/link",
    summary: "Make a link with which a user sets a password",
    description:
      "For invitations and forgotten passwords. Whoever opens the link in the console chooses the " +
      "user's password and is signed in, once. The user's earlier link ends; its sessions and its " +
      "password do when the link is used. Disabling the user ends the link.",
    status: 201,
    body: newLinkSchema,
    answer: issuedLinkSchema,
    hasSecret: true,
    async run({ changing, body, entity: user, show }) {
      if (user.disabledAt !== undefined) throw wrongState("The user is disabled. Enable it first.");
      const lifetimeMs = body.expires_in_hours * 3_600_000;
      const link = { user, purpose: "new-password", lifetimeMs } as const;
      const { url, expiresAt } = await insertLink(changing, link, services);
      return { user: await show(user), url, expires_at: timeText(expiresAt) };
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
