import { expect, test } from "bun:test";
import { startGateway } from "../support/gateway.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { runSluice, type ServingProcess, startServing } from "../support/sluice-process.ts";
import { askAdmin, callWith, makeProcessFolder, type ProcessFolder } from "./outage-process.ts";

describeWithPostgres((databases) => {
  test("two gateways share keys and the ledger, also across a crash of the database", async () => {
    const { server } = databases;
    const storageUrl = await server.createDatabase();
    await using folder = makeProcessFolder({ storageUrl });
    await using other = makeProcessFolder({ storageUrl });
    await using gateway = await startServing(["--config", folder.configPath]);
    await using second = await startServing(["--config", other.configPath]);
    const key = await createKey(folder);
    await until(async () => (await callWith(gateway, key)) === 200);
    await until(async () => (await callWith(second, key)) === 200);

    await until(async () => (await countCalls(gateway, folder)) >= 2);
    const before = await countCalls(second, other);
    await server.kill();
    expect(await callWith(gateway, key)).toBe(200);
    expect(await callWith(second, key)).toBe(200);
    await server.start();
    await until(async () => (await countCalls(gateway, folder)) >= before + 2);

    const { output } = await sluice(folder, ["keys", "list", "--json"]);
    const [id = ""] = /key_\w+/.exec(output) ?? [];
    await sluice(folder, ["keys", "revoke", id]);
    await until(async () => (await callWith(second, key)) === 401);
  });

  test("a key reads its limits, without totals, while the database is silent", async () => {
    const { server } = databases;
    const storage = `{ url: "${await server.createDatabase()}" }`;
    await using gateway = await startGateway({ sections: { storage } });
    server.signal("SIGSTOP");
    try {
      const answer = await gateway.get("/v1/usage");
      expect([answer.status, await answer.json()]).toMatchObject([200, { totals: null }]);
    } finally {
      server.signal("SIGCONT");
    }
  });
});

async function createKey(folder: ProcessFolder): Promise<string> {
  await sluice(folder, ["accounts", "create", "Shop"]);
  const place = ["--account", "Shop", "--environment", "production"];
  await sluice(folder, ["applications", "create", "search", ...place]);
  const issued = ["keys", "create", "--application", "search", "--plan", "pilot"];
  return (await sluice(folder, issued)).output.trim();
}

async function sluice({ configPath }: ProcessFolder, command: readonly string[]) {
  const finished = await runSluice([...command, "--config", configPath]);
  if (finished.exitCode !== 0) throw new Error(`${command.join(" ")}: ${finished.errors}`);
  return finished;
}

/** The calls of the ledger, or 0 while the database is away. */
async function countCalls(gateway: ServingProcess, folder: ProcessFolder): Promise<number> {
  const { status, body } = await askAdmin(gateway, folder, "/usage/calls?limit=100");
  if (status === 503) return 0;
  expect(status).toBe(200);
  return JSON.stringify(body).split('"req_').length - 1;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(50);
}
