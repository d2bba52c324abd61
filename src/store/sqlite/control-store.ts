import type { Database } from "bun:sqlite";
import type { AuditLink } from "../../domain/audit/audit-checkpoint.ts";
import type { AuditSeals } from "../../domain/audit/audit-seals.ts";
import type {
  AuditEnd,
  AuditExpectation,
  AuditVerdict,
  ControlRetention,
  ControlStore,
  ControlTransaction,
  ControlView,
  PepperUse,
} from "../control-store.ts";
import { findEnd } from "./audit-ends.ts";
import type { SqliteConnection } from "./connection/connection.ts";
import { countPepperUse } from "./pepper-use.ts";
import { pruneControl } from "./prune-control.ts";
import { Scope } from "./connection/scope.ts";
import { Table } from "./table.ts";
import { AccountTable, accountTable } from "./tables/account-table.ts";
import { applicationTable } from "./tables/application-table.ts";
import { AuditTable } from "./tables/audit-table.ts";
import { KeyTable, keyTable } from "./tables/key-table.ts";
import { ReplyTable } from "./tables/reply-table.ts";
import { SecretTable } from "./tables/secret-table.ts";
import { SessionTable } from "./tables/session-table.ts";
import { TokenTable, tokenTable } from "./tables/token-table.ts";
import { UserTable, userTable } from "./tables/user-table.ts";
import { verifyAudit } from "./verify-audit.ts";

/** The control plane in SQLite. */
export class SqliteControlStore implements ControlStore {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  read<Result>(work: (view: ControlView) => Promise<Result>): Promise<Result> {
    return this.#connection.snapshot((database) => this.#inScope(database, work));
  }

  change<Result>(work: (transaction: ControlTransaction) => Promise<Result>): Promise<Result> {
    return this.#connection.transact((database) => this.#inScope(database, work));
  }

  verifyAudit(signal: AbortSignal, expected?: AuditExpectation): Promise<AuditVerdict> {
    return verifyAudit(this.#connection, signal, expected);
  }

  auditEnd(known?: AuditLink): Promise<AuditEnd> {
    const { seals } = this.#connection;
    return this.#connection.use((database) =>
      database.transaction(() => findEnd(database, seals, known))(),
    );
  }

  pepperUse(now: number): Promise<PepperUse> {
    return this.#connection.use((database) => countPepperUse(database, now));
  }

  prune(limits: ControlRetention, limit: number): Promise<number> {
    return pruneControl(this.#connection, limits, limit);
  }

  #inScope<Result>(
    database: Database,
    work: (transaction: ControlTransaction) => Promise<Result>,
  ): Promise<Result> {
    return inScope(database, () => this.#connection.seals, work);
  }
}

async function inScope<Result>(
  database: Database,
  seals: () => AuditSeals,
  work: (transaction: ControlTransaction) => Promise<Result>,
): Promise<Result> {
  const scope = new Scope(database);
  try {
    return await work({
      accounts: new AccountTable(accountTable, scope),
      applications: new Table(applicationTable, scope),
      keys: new KeyTable(keyTable, scope),
      secrets: new SecretTable(scope),
      users: new UserTable(userTable, scope),
      sessions: new SessionTable(scope),
      tokens: new TokenTable(tokenTable, scope),
      audit: new AuditTable(scope, seals),
      replies: new ReplyTable(scope),
    });
  } finally {
    scope.end();
  }
}
