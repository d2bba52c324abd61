import type { Role } from "../../../domain/principal.ts";
import { type EntitySpec, EntityTable, equals } from "../entity-table.ts";
import { present } from "../row.ts";
import type { Queries, UserRow } from "../tables.ts";
import type { User } from "../../entities.ts";

interface UserFilter {
  readonly accountId?: string | undefined;
  readonly role?: Role | undefined;
  readonly email?: string | undefined;
}

const spec: EntitySpec<User, UserRow, UserFilter> = {
  table: "users",
  select: (queries) => queries.selectFrom("users").selectAll(),
  fixed: [],
  write: ({ identity, ...columns }) => ({
    ...columns,
    identityIssuer: identity?.issuer,
    identitySubject: identity?.subject,
  }),
  read: ({ identityIssuer: issuer, identitySubject: subject, ...row }) => ({
    ...present(row),
    identity: issuer === null || subject === null ? undefined : { issuer, subject },
  }),
  conditions: ({ accountId, role, email }) => [
    equals("users.accountId", accountId),
    equals("users.role", role),
    equals("users.email", email),
  ],
};

export class Users extends EntityTable<User, UserRow, UserFilter> {
  constructor(queries: Queries) {
    super(spec, queries);
  }

  findByIdentity(identityIssuer: string, identitySubject: string): Promise<User | undefined> {
    return this.findBy({ identityIssuer, identitySubject });
  }

  /** Does not change the revision. */
  async signedIn(id: string, at: number): Promise<void> {
    const update = this.queries.updateTable("users").set({ lastSignInAt: at });
    await update.where("id", "=", id).execute();
  }
}
