import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { runSluice, startServing } from "../support/sluice-process.ts";
import { callWith, makeProcessFolder, type ProcessFolder } from "./outage-process.ts";
import { until } from "./machines-bench.ts";

const kills = 3;
/** Of the plan `pilot`. */
const limit = 60;

describeWithPostgres((databases) => {
  test("a key gets its minute once, though the database is away and the gateway is killed", async () => {
    const { server } = databases;
    const storageUrl = await server.createDatabase();
    await using folder = makeProcessFolder({ storageUrl });
    const key = await (async () => {
      await using first = await startServing(["--config", folder.configPath]);
      const made = await makeKey(folder);
      await until(async () => (await callWith(first, made)) === 200);
      await until(async () => existsSync(join(folder.dataDir, "keys")));
      return made;
    })();
    await server.kill();
    // The call before, and all that follow within its minute.
    let admitted = 1;
    const startedAt = performance.now();
    for (let round = 0; round <= kills; round += 1) {
      const gateway = await startServing(["--config", folder.configPath]);
      for (let call = 0; call < limit / 2; call += 1) {
        const status = await callWith(gateway, key);
        expect([200, 429]).toContain(status);
        if (status === 200) admitted += 1;
      }
      gateway.kill();
      await gateway.exited;
    }
    expect(performance.now() - startedAt).toBeLessThan(60_000);
    expect(admitted).toBe(limit);
    await server.start();
  }, 120_000);
});

async function makeKey(folder: ProcessFolder): Promise<string> {
  const sluice = async (line: string): Promise<string> =>
    (await runSluice([...line.split(" "), "--config", folder.configPath])).output.trim();
  await sluice("accounts create Shop");
  await sluice("applications create search --account Shop --environment production");
  return sluice("keys create --application search --plan pilot");
}
