import { expect, test } from "bun:test";
import { sql } from "kysely";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { describeWithPostgres } from "../../../test/support/postgres-databases.ts";
import { openStores } from "../sqlite/open-stores.ts";
import { jobLocksIn } from "./job-locks.ts";
import type { SqlConnection } from "./tables.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

async function checkLocks(connection: Pick<SqlConnection, "change">): Promise<void> {
  const clock = new ManualClock();
  const locks = jobLocksIn(connection, () => sql<number>`cast(${clock.now()} as bigint)`);
  expect(await locks.take("retention", "one", 10_000)).toBe(true);
  expect(await locks.take("retention", "two", 10_000)).toBe(false);
  expect(await locks.take("checkpoints", "two", 10_000)).toBe(true);
  clock.advance(60_000);
  expect(await locks.take("retention", "one", 10_000)).toBe(true);
  clock.advance(60_000);
  expect(await locks.take("retention", "two", 10_000)).toBe(false);
  clock.advance(10_001);
  expect(await locks.take("retention", "two", 10_000)).toBe(true);
  expect(await locks.take("retention", "one", 10_000)).toBe(false);
}

const title = "one machine has a job until it does not run it again in time";

test(title, () =>
  checkLocks(openStores(":memory:", new ManualClock(), { peppers: testPeppers() }).connection),
);

describeWithPostgres(({ connect }) => {
  test(title, async () => checkLocks((await connect()).inLane(undefined)));
});
