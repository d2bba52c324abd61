import { nameOfDatabase } from "../../../domain/addresses.ts";
import { StorageUnavailable } from "../../errors.ts";
import type { DatabaseFacts } from "../../store.ts";
import type { ComparedRow } from "../../process-row.ts";
import { present } from "../../repositories/row.ts";
import { schemaVersion } from "../../repositories/schema.ts";
import type { Row as StoredRow } from "../../repositories/tables.ts";
import { readFacts } from "./prepare-database.ts";
import { createClient } from "./pool.ts";
import { troubleOf } from "./postgres-trouble.ts";

/** What decides whether a gateway can use a server. */
export interface ServerFacts {
  /** Undefined if the user may not create tables, or not change those that exist. */
  readonly database: DatabaseFacts | undefined;
  /** Of the server, such as 150018 for 15.18. */
  readonly version: number;
  readonly encoding: string;
  /** Whether it is a replica of another server. */
  readonly isReplica: boolean;
  readonly isReadOnly: boolean;
  /** How far the server's clock is ahead of this machine's. */
  readonly aheadMs: number;
  /** Connections that this user can still open. */
  readonly freeConnections: number;
  /** The gateway processes on the database. */
  readonly processes: readonly ComparedRow[];
}

interface Row extends Omit<ServerFacts, "database" | "aheadMs" | "processes"> {
  readonly hasRights: boolean;
  readonly now: number;
}

const question = `
  SELECT current_setting('server_version_num')::int AS version,
    current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS "isReplica",
    current_setting('default_transaction_read_only')::bool AS "isReadOnly",
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
      AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace
        AND relkind IN ('r', 'p') AND NOT pg_has_role(relowner, 'USAGE')) AS "hasRights",
    extract(epoch FROM clock_timestamp()) * 1000 AS now,
    least(
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
      (SELECT CASE WHEN datconnlimit < 0 THEN 1000000 ELSE datconnlimit
         - (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) END
       FROM pg_database WHERE datname = current_database()),
      (SELECT CASE WHEN rolconnlimit < 0 THEN 1000000 ELSE rolconnlimit
         - (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user) END
       FROM pg_roles WHERE rolname = current_user)
    ) AS "freeConnections"`;

const processQuestion = `
  SELECT id, name, number, admin_url AS "adminUrl", started_at AS "startedAt", limits_digest AS "limitsDigest",
    pepper_marks AS "pepperMarks",
    extract(epoch FROM clock_timestamp()) * 1000 - signed_at AS "silentMs"
  FROM processes ORDER BY name, number, id`;

/** Asks a server about itself, without changing it. Throws `StorageUnavailable`. */
export async function inspectServer(url: string, now: () => number): Promise<ServerFacts> {
  const name = nameOfDatabase(url);
  const client = await createClient({ url });
  try {
    await client.connect();
    const askedAt = now();
    const { rows } = await client.query<Row>(question);
    const [row] = rows;
    if (row === undefined) throw new Error("the server gave no answer");
    // The server's answer was made in the middle of the wait for it.
    const aheadMs = row.now - (askedAt + now()) / 2;
    const database = row.hasRights ? await readFacts(client, name) : undefined;
    const processes =
      database?.version === schemaVersion
        ? (await client.query<StoredRow<ComparedRow>>(processQuestion)).rows.map((each) =>
            present(each),
          )
        : [];
    return { ...row, aheadMs, database, processes };
  } catch (error) {
    const what = troubleOf(error)?.what ?? "cannot be used";
    throw new StorageUnavailable(`the database ${name} ${what}`, { cause: error });
  } finally {
    client.end().catch(() => undefined);
  }
}
