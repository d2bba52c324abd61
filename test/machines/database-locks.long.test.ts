import { afterAll } from "bun:test";
import pg from "pg";
import { lockOf } from "../../src/store/postgres/connection/lanes.ts";
import { isComplete } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { runDatabaseFault, type DatabaseFault } from "./faults/database-run.ts";
import { MachineStack, testWithMachines } from "./machine-stack.ts";

const durationMs = isComplete ? 30_000 : 6_000;

let stack: MachineStack | undefined;
afterAll(() => stack?.[Symbol.asyncDispose]());

/** One stack for all faults: each has keys of its own. */
async function run(fault: DatabaseFault): Promise<void> {
  stack ??= await MachineStack.create({ timeout: "50ms" });
  for (const line of await runDatabaseFault(stack, fault)) report(line);
}

testWithMachines(
  "another client that takes the same locks in the opposite order loses no call and no change",
  () =>
    run({
      name: "with deadlocks",
      durationMs,
      async begin({ storageUrl }) {
        const ofUsage = startDeadlocks(storageUrl, { table: "usage_sums", lane: "usage" });
        const ofEntities = startDeadlocks(storageUrl, { table: "accounts", lane: "entities" });
        return async () => {
          const ended = (await ofUsage()) + (await ofEntities());
          process.stdout.write(`${ended} transactions of gateways were ended\n`);
        };
      },
    }),
  300_000,
);

testWithMachines(
  "another client that holds the locks of all changes delays only what is stored",
  () =>
    run({
      name: "locked",
      durationMs,
      async begin({ storageUrl }) {
        const client = await connect(storageUrl);
        await client.query(
          `BEGIN; ${lockOf("entities")}; ${lockOf("usage")}; ${lockOf("replies")}`,
        );
        return async () => {
          await client.query("ROLLBACK");
          await client.end();
        };
      },
    }),
  300_000,
);

testWithMachines(
  "while PostgreSQL refuses to write, known keys are served, and all calls are stored later",
  () =>
    run({
      name: "full, then read-only",
      durationMs: durationMs / 2,
      async begin({ storageUrl }) {
        const client = await connect(storageUrl);
        const refuse = (code: string): Promise<unknown> =>
          client.query(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '${code}'; END $$`);
        await refuse("53100");
        for (const table of ["usage", "accounts", "audit"]) {
          await client.query(`CREATE TRIGGER refuses BEFORE INSERT ON ${table}
            FOR EACH ROW EXECUTE FUNCTION refuse()`);
        }
        await Bun.sleep(durationMs / 2);
        await refuse("25006");
        return async () => {
          await client.query("DROP FUNCTION refuse CASCADE");
          await client.end();
        };
      },
    }),
  300_000,
);

interface LockOrder {
  readonly table: string;
  readonly lane: "usage" | "entities";
}

/**
 * Takes a table and then a lane, which gateways take the other way round. Ends once PostgreSQL has
 * ended transactions of the gateways too; returns how many.
 */
function startDeadlocks(url: string, { table, lane }: LockOrder): () => Promise<number> {
  let isOver = false;
  let ownEnded = 0;
  const running = (async () => {
    const client = await connect(url);
    const before = await countDeadlocks(client);
    const ofGateways = async () => (await countDeadlocks(client)) - before - ownEnded;
    for (let round = 0; !isOver || (await ofGateways()) <= 0; round += 1) {
      // Whoever looks for a deadlock first is ended: the client, or else the gateway.
      await client.query(`SET deadlock_timeout = '${round % 2 === 0 ? 50 : 10_000}ms'`);
      try {
        await client.query(`BEGIN; LOCK TABLE ${table} IN EXCLUSIVE MODE`);
        await Bun.sleep(50);
        await client.query(`${lockOf(lane)}; COMMIT`);
      } catch {
        ownEnded += 1;
        await client.query("ROLLBACK");
      }
      await Bun.sleep(50);
    }
    const ended = await ofGateways();
    await client.end();
    return ended;
  })();
  return () => {
    isOver = true;
    return running;
  };
}

async function countDeadlocks(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ deadlocks: string }>(
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
  );
  return Number(rows[0]?.deadlocks);
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}
