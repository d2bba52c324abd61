import type { Peppers } from "../../domain/keys/peppers.ts";
import type { NamedDimension } from "../../domain/usage/usage.ts";
import type { AuditLink } from "../audit.ts";
import type {
  AuditEnds,
  AuditExpectation,
  AuditVerdict,
  ControlRetention,
  PepperUse,
  StoredReply,
} from "../control-store.ts";
import { auditIn, findAuditEnds, verifyAudit } from "./audit.ts";
import { asRow, present } from "./row.ts";
import type { Queries, SqlConnection } from "./tables.ts";
import { Accounts } from "./control/accounts.ts";
import { applicationSpec } from "./control/applications.ts";
import { EntityTable } from "./entity-table.ts";
import { dueIn } from "./control/due.ts";
import { linksIn } from "./control/links.ts";
import { Budgets } from "./budgets/budgets.ts";
import { readNames } from "./control/names.ts";
import { Keys } from "./control/keys.ts";
import { secretsIn } from "./control/secrets.ts";
import { Sessions } from "./control/sessions.ts";
import { Tokens } from "./control/tokens.ts";
import { Users } from "./control/users.ts";
import { type EndUserDigests, endUserDigests } from "../../domain/keys/pseudonyms.ts";
import { countPepperUse } from "./pepper-use.ts";
import { pruneControl } from "./prune-control.ts";

/** All data of the control plane in one transaction. */
export type ControlTransaction = ReturnType<typeof tablesIn>;

type OfKeys = "ofKey" | "countLive" | "soldUnits" | "freeLimitScope";
type OfBudgets = "states" | "count";
type OfDue = "keysDue" | "tokensDue" | "rotationsDue";
type Reads = "get" | "list" | "findByIdentity" | "findByPublicId" | OfKeys | OfBudgets | OfDue;

/** What reads the same data. */
export type ControlView = {
  readonly [Table in keyof ControlTransaction]: Pick<
    ControlTransaction[Table],
    Reads & keyof ControlTransaction[Table]
  >;
};

/** The data of the control plane: who owns which key, who may change it, and who did. */
export class ControlStore {
  readonly #connection: SqlConnection;
  readonly #digestsOf: EndUserDigests;

  constructor(connection: SqlConnection, peppers: Peppers) {
    this.#connection = connection;
    this.#digestsOf = endUserDigests(peppers);
  }

  /** Reads one consistent state of the data. Throws `StorageUnavailable`. */
  read<Result>(work: (view: ControlView) => Promise<Result>): Promise<Result> {
    return this.#connection.read((queries) => work(tablesIn(queries, this.#digestsOf)));
  }

  /**
   * Runs transactions one at a time; an error thrown by `work` rolls back. `work` must await only
   * the transaction. Throws `StorageUnavailable`.
   */
  change<Result>(work: (transaction: ControlTransaction) => Promise<Result>): Promise<Result> {
    return this.#connection.change((queries) => work(tablesIn(queries, this.#digestsOf)));
  }

  /** Reads the whole audit in pages and checks the chain. */
  verifyAudit(signal: AbortSignal, expected?: AuditExpectation): Promise<AuditVerdict> {
    return verifyAudit(this.#connection, signal, expected);
  }

  /** The ends of the audit, without reading all of it, and whether it still contains `known`. */
  auditEnds(known?: AuditLink): Promise<AuditEnds> {
    return this.#connection.read((queries) => findAuditEnds(queries, known));
  }

  /** See `readNames`. */
  names(dimension: NamedDimension, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#connection.read((queries) => readNames(queries, dimension, ids));
  }

  /** Counts what is live at a time, by the pepper that protects it. */
  pepperUse(now: number): Promise<PepperUse> {
    return this.#connection.read((queries) => countPepperUse(queries, now));
  }

  /** Removes at most `limit` rows of each table older than the given times; returns how many. */
  prune(limits: ControlRetention, limit: number): Promise<number> {
    return pruneControl(this.#connection, limits, limit);
  }
}

function tablesIn(queries: Queries, digestsOf: EndUserDigests) {
  return {
    accounts: new Accounts(queries),
    applications: new EntityTable(applicationSpec, queries),
    budgets: new Budgets(queries, digestsOf),
    /** Every change of a key, its secrets, application or account reaches the key rings. */
    keys: new Keys(queries),
    secrets: secretsIn(queries),
    due: dueIn(queries),
    users: new Users(queries),
    sessions: new Sessions(queries),
    links: linksIn(queries),
    tokens: new Tokens(queries),
    audit: auditIn(queries),
    replies: repliesIn(queries),
  };
}

/** Replayable answers of the admin API. */
function repliesIn(queries: Queries) {
  return {
    async get(id: string): Promise<StoredReply | undefined> {
      const query = queries.selectFrom("replies").selectAll().where("id", "=", id);
      const row = await query.executeTakeFirst();
      return row && present(row);
    },

    async put(reply: StoredReply): Promise<void> {
      const row = asRow(reply);
      await queries
        .insertInto("replies")
        .values(row)
        .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
        .execute();
    },
  };
}
