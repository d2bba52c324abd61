import { afterAll, afterEach, beforeAll, describe } from "bun:test";
import {
  PostgresConnection,
  type PostgresOptions,
} from "../../src/store/postgres/connection/connection.ts";
import { postgresPrograms, type PostgresServer, startPostgres } from "./postgres-server.ts";
import { testWhere } from "./requirement.ts";

/** A server for the tests of a file. */
export interface PostgresDatabases {
  readonly server: PostgresServer;
  /** Connects to an empty database; the end of the test closes it. */
  readonly connect: (options?: Partial<PostgresOptions>) => Promise<PostgresConnection>;
}

/** The machine of the tests may be busy. */
const patient = { connectTimeoutMs: 30_000, lockWaitMs: 30_000, statementTimeoutMs: 30_000 };

/** Defines tests that need a PostgreSQL server. */
export function describeWithPostgres(define: (databases: PostgresDatabases) => void): void {
  if (postgresPrograms === undefined) {
    testWhere(false, "PostgreSQL is not installed")("PostgreSQL is installed", () => {
      throw new Error("PostgreSQL is not installed");
    });
    return;
  }
  describe("PostgreSQL", () => {
    const connections: PostgresConnection[] = [];
    let started: PostgresServer | undefined;

    function server(): PostgresServer {
      if (started === undefined) throw new Error("the server is not started yet");
      return started;
    }

    beforeAll(async () => {
      started = await startPostgres();
    });

    afterEach(async () => {
      await Promise.all(connections.splice(0).map((connection) => connection.close()));
    });

    afterAll(() => started?.[Symbol.asyncDispose]());

    define({
      get server() {
        return server();
      },
      async connect(options = {}) {
        const url = options.url ?? (await server().createDatabase());
        const connection = new PostgresConnection({ ...patient, ...options, url });
        connections.push(connection);
        return connection;
      },
    });
  });
}
