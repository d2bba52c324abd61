import type { AuditLink } from "../../domain/audit.ts";
import type {
  AuditEnds,
  AuditExpectation,
  AuditVerdict,
  ControlRetention,
  ControlStore,
  ControlTransaction,
  ControlView,
  PepperUse,
} from "../control-store.ts";
import { AuditLog, findAuditEnds, verifyAudit } from "./audit.ts";
import type { Queries, SqlConnection } from "./tables.ts";
import { Accounts } from "./control/accounts.ts";
import { applicationSpec } from "./control/applications.ts";
import { EntityTable } from "./entity-table.ts";
import { Keys } from "./control/keys.ts";
import { Replies } from "./control/replies.ts";
import { Secrets } from "./control/secrets.ts";
import { Sessions } from "./control/sessions.ts";
import { Tokens } from "./control/tokens.ts";
import { Users } from "./control/users.ts";
import { countPepperUse } from "./pepper-use.ts";
import { pruneControl } from "./prune-control.ts";

/** The control plane in a database. */
export class SqlControlStore implements ControlStore {
  readonly #connection: SqlConnection;

  constructor(connection: SqlConnection) {
    this.#connection = connection;
  }

  read<Result>(work: (view: ControlView) => Promise<Result>): Promise<Result> {
    return this.#connection.read((queries) => work(this.#tables(queries)));
  }

  change<Result>(work: (transaction: ControlTransaction) => Promise<Result>): Promise<Result> {
    return this.#connection.change((queries) => work(this.#tables(queries)));
  }

  verifyAudit(signal: AbortSignal, expected?: AuditExpectation): Promise<AuditVerdict> {
    return verifyAudit(this.#connection, signal, expected);
  }

  auditEnds(known?: AuditLink): Promise<AuditEnds> {
    return this.#connection.read((queries) => findAuditEnds(queries, known));
  }

  pepperUse(now: number): Promise<PepperUse> {
    return countPepperUse(this.#connection, now);
  }

  prune(limits: ControlRetention, limit: number): Promise<number> {
    return pruneControl(this.#connection, limits, limit);
  }

  #tables(queries: Queries): ControlTransaction {
    return {
      accounts: new Accounts(queries),
      applications: new EntityTable(applicationSpec, queries),
      keys: new Keys(queries),
      secrets: new Secrets(queries),
      users: new Users(queries),
      sessions: new Sessions(queries),
      tokens: new Tokens(queries),
      audit: new AuditLog(queries),
      replies: new Replies(queries),
    };
  }
}
