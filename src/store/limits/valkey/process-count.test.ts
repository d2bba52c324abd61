import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { createProcessCount, keepProcessCount } from "./process-count.ts";

test("the number of processes is what the database last told, also after a restart without it", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-count-"));
  const clock = new ManualClock();
  const count = createProcessCount({ dataDir, own: 2, clock });
  expect(count()).toBe(2);
  await keepProcessCount(dataDir, 6);
  clock.advance(1_000);
  expect(count()).toBe(6);
  expect(createProcessCount({ dataDir, own: 2, clock })()).toBe(6);
  // Never fewer than its own, whatever the file says.
  await keepProcessCount(dataDir, 1);
  clock.advance(1_000);
  expect(count()).toBe(2);
  writeFileSync(join(dataDir, "process-count"), "many\n");
  clock.advance(1_000);
  expect(count()).toBe(2);
  rmSync(dataDir, { recursive: true });
});
