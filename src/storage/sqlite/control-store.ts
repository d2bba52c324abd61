import type { Database } from "bun:sqlite";
import type {
  AuditVerdict,
  ControlRetention,
  ControlStore,
  ControlTransaction,
  ControlView,
} from "../control-store.ts";
import type { SqliteConnection } from "./connection.ts";
import { pruneControl } from "./prune-control.ts";
import { Scope } from "./scope.ts";
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
    return this.#connection.snapshot((database) => inScope(database, work));
  }

  change<Result>(work: (transaction: ControlTransaction) => Promise<Result>): Promise<Result> {
    return this.#connection.transact((database) => inScope(database, work));
  }

  verifyAudit(signal: AbortSignal): Promise<AuditVerdict> {
    return verifyAudit(this.#connection, signal);
  }

  prune(limits: ControlRetention, limit: number): Promise<number> {
    return pruneControl(this.#connection, limits, limit);
  }
}

async function inScope<Result>(
  database: Database,
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
      audit: new AuditTable(scope),
      replies: new ReplyTable(scope),
    });
  } finally {
    scope.end();
  }
}
