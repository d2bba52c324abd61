import type { Role, User } from "../../../domain/accounts/user.ts";
import type { UserFilter } from "../../control-store.ts";
import { equals, Table, type TableSpec } from "../table.ts";

export interface UserRow {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly account_id: string | null;
  readonly password_hash: string | null;
  readonly identity_issuer: string | null;
  readonly identity_subject: string | null;
  readonly created_at: number;
  readonly disabled_at: number | null;
  readonly last_sign_in_at: number | null;
  readonly revision: number;
}

export const userTable: TableSpec<User, UserRow, UserFilter> = {
  table: "users",
  fixed: [],
  values: (user) => ({
    id: user.id,
    email: user.email,
    name: user.name,
    role: user.role,
    account_id: user.accountId ?? null,
    password_hash: user.passwordHash ?? null,
    identity_issuer: user.identity?.issuer ?? null,
    identity_subject: user.identity?.subject ?? null,
    created_at: user.createdAt,
    disabled_at: user.disabledAt ?? null,
    last_sign_in_at: user.lastSignInAt ?? null,
    revision: user.revision,
  }),
  read: readUser,
  conditions: (filter) => [
    equals("account_id", filter.accountId),
    equals("role", filter.role),
    equals("email", filter.email),
  ],
};

export class UserTable extends Table<User, UserRow, UserFilter> {
  findByIdentity(issuer: string, subject: string): Promise<User | undefined> {
    return this.scope.run((database) => {
      const row = database
        .query<UserRow, [string, string]>(
          "SELECT * FROM users WHERE identity_issuer = ? AND identity_subject = ?",
        )
        .get(issuer, subject);
      return row === null ? undefined : readUser(row);
    });
  }

  signedIn(id: string, at: number): Promise<void> {
    return this.scope.run((database) => {
      database.run("UPDATE users SET last_sign_in_at = ? WHERE id = ?", [at, id]);
    });
  }
}

function readUser(row: UserRow): User {
  const { identity_issuer: issuer, identity_subject: subject } = row;
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    role: row.role,
    accountId: row.account_id ?? undefined,
    passwordHash: row.password_hash ?? undefined,
    identity: issuer === null || subject === null ? undefined : { issuer, subject },
    createdAt: row.created_at,
    disabledAt: row.disabled_at ?? undefined,
    lastSignInAt: row.last_sign_in_at ?? undefined,
    revision: row.revision,
  };
}
