import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import type { Role } from "../../domain/principal.ts";
import { AlreadyExists } from "../../store/errors.ts";
import type { ControlTransaction, ControlView } from "../../store/repositories/control-store.ts";
import { changeOf } from "../audit/audit-fields.ts";
import type { Change } from "../operation/change.ts";
import { invalidField, wrongState } from "../operation/refusals.ts";
import { userSchema, type UserView } from "../contract/access.ts";
import { viewAs } from "../values/api-form.ts";
import type { User } from "../../store/entities.ts";

type UserFacts = Pick<User, "email" | "name" | "role"> &
  Partial<Pick<User, "accountId" | "passwordHash" | "identity">>;

export function newUser(facts: UserFacts, now: number, random: RandomBytes): User {
  return {
    id: `user_${randomBase62(16, random)}`,
    accountId: undefined,
    passwordHash: undefined,
    identity: undefined,
    ...facts,
    createdAt: now,
    disabledAt: undefined,
    lastSignInAt: undefined,
    revision: 1,
  };
}

/** Adds a user, with its entry in the audit. Throws 400 and 409. */
export async function insertUser(change: Change, user: User): Promise<void> {
  await requireFit(change.transaction, user);
  await orEmailTaken(change.transaction.users.insert(user));
  await change.audit(changeOf("user", "create", { after: user }));
}

/**
 * Changes a user, with its entry in the audit. A change of role, account or password ends the
 * user's sessions and sign-in link; disabling also revokes its tokens. Throws 400 and 409.
 */
export async function updateUser(change: Change, before: User, wanted: User): Promise<User> {
  const { transaction, now } = change;
  await requireFit(transaction, wanted);
  if (isEnabledOperator(before) && !isEnabledOperator(wanted)) {
    await requireOtherOperator(transaction, before);
  }
  const after = await transaction.users.update(wanted);
  const isDisabled = before.disabledAt === undefined && after.disabledAt !== undefined;
  const mayOther = before.role !== after.role || before.accountId !== after.accountId;
  const hasNewPassword = before.passwordHash !== after.passwordHash;
  if (isDisabled || mayOther || hasNewPassword) {
    await transaction.sessions.deleteOf(after.id);
    await transaction.links.deleteOf(after.id);
  }
  if (isDisabled) await transaction.tokens.revokeOf(after.id, now);
  const entry = changeOf("user", "update", { before, after });
  // The hash itself is never audited, so a flag marks a new one.
  const marked = { ...entry.after, ...(hasNewPassword && { has_new_password: true }) };
  await change.audit({ ...entry, accountId: after.accountId, after: marked });
  return after;
}

/** Removes a user, with sessions and tokens. Throws 409 for the last operator. */
export async function deleteUser(change: Change, user: User): Promise<void> {
  if (isEnabledOperator(user)) await requireOtherOperator(change.transaction, user);
  // Tokens made for others with this user's tokens are revoked too.
  await change.transaction.tokens.revokeOf(user.id, change.now);
  await change.transaction.users.delete(user.id);
  await change.audit(changeOf("user", "delete", { before: user }));
}

/** Checks that role and account go together. Throws 400 that names the field to change. */
async function requireFit(view: ControlView, user: User): Promise<void> {
  const problem = accountProblem(user.role, user.accountId);
  if (problem !== undefined) throw invalidField("account_id", problem);
  if (user.accountId === undefined) return;
  if ((await view.accounts.get(user.accountId)) === undefined) {
    throw invalidField("account_id", "this account does not exist");
  }
}

function accountProblem(role: Role, accountId: string | undefined): string | undefined {
  switch (role) {
    case "operator":
      return accountId === undefined ? undefined : "operators have no account; send null";
    case "account_holder":
      return accountId === undefined ? "account holders need an account" : undefined;
    case "auditor":
      return undefined;
  }
}

function isEnabledOperator(user: User): boolean {
  return user.role === "operator" && user.disabledAt === undefined;
}

/** Without an operator, nobody could create another one. */
async function requireOtherOperator(transaction: ControlTransaction, user: User): Promise<void> {
  let after: string | undefined;
  do {
    const page = await transaction.users.list({ role: "operator" }, { limit: 100, after });
    if (page.items.some((other) => other.id !== user.id && isEnabledOperator(other))) return;
    after = page.next;
  } while (after !== undefined);
  throw wrongState("This is the last enabled operator. Make another user an operator first.");
}

async function orEmailTaken(insertion: Promise<void>): Promise<void> {
  try {
    await insertion;
  } catch (error) {
    if (!(error instanceof AlreadyExists)) throw error;
    throw new GatewayError("already_exists", {
      message: "A user with this email address already exists.",
      param: "email",
      cause: error,
    });
  }
}

/** A user as the API shows it: no hash, no identity. */
export function viewUser(user: User): UserView {
  return viewAs(userSchema, user, {
    has_password: user.passwordHash !== undefined,
    has_single_sign_on: user.identity !== undefined,
  });
}
