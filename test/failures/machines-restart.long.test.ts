import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { generateApiKey } from "../../src/domain/keys/api-key.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { runSluice, type ServingProcess, startServing } from "../support/sluice-process.ts";
import { askAdmin, callWith, makeProcessFolder, type ProcessFolder } from "./outage-process.ts";
import { until } from "./machines-bench.ts";

describeWithPostgres((databases) => {
  test("a gateway that starts without the database serves the keys it knew, at the prices it knew", async () => {
    const { server } = databases;
    const storageUrl = await server.createDatabase();
    const settings = "prices: [{ provider: 127.0.0.1, model: simulated-embedding, input: 1 }]";
    await using folder = makeProcessFolder({ storageUrl, settings });
    const [key, revoked] = await (async () => {
      await using first = await startServing(["--config", folder.configPath]);
      const made = await makeKeys(folder, first);
      await until(async () => (await callWith(first, made[0])) === 200);
      return made;
    })();
    await server.kill();
    await using gateway = await startServing(["--config", folder.configPath]);
    await until(async () => (await callWith(gateway, key)) === 200);
    // The file knows its end until it is written anew.
    expect([401, 503]).toContain(await callWith(gateway, revoked));
    expect(await callWith(gateway, unknownKey())).toBe(503);
    const readiness = await fetch(`${gateway.dataUrl}/readyz`);
    const degraded = "ready, degraded: the database cannot be read; known keys work\n";
    expect([readiness.status, await readiness.text()]).toEqual([200, degraded]);
    await until(async () => {
      const ofControl = await fetch(`${gateway.adminUrl}/readyz`);
      return ofControl.status === 200 && (await ofControl.text()) === degraded;
    });
    const place = ["--config", folder.configPath];
    const revoke = await runSluice(["keys", "revoke", "key_0123456789abcdef", "--yes", ...place]);
    expect(revoke.exitCode).toBe(1);
    expect(revoke.errors).toContain("`sluice doctor` on a gateway looks for the cause.");
    expect(revoke.errors).toContain("To stop a key meanwhile, refuse it in the proxy.");
    await server.start();
    await until(async () => (await callWith(gateway, revoked)) === 401);
    await until(async () => (await callWith(gateway, unknownKey())) === 401);
    await until(async () => (await readinessOf(gateway)) === "ready\n");
    // The call before, the one without the database, and none twice.
    await until(async () => (await countCalls(gateway, folder)) >= 2);
    expect(await countCalls(gateway, folder)).toBe(2);
    const calls = await askAdmin(gateway, folder, "/usage/calls?limit=100");
    expect(calls.body).toMatchObject({ data: [{ price_version: 1 }, { price_version: 1 }] });
  });
});

/** A live key and one that was revoked, both known to the file on disk. */
async function makeKeys(
  folder: ProcessFolder,
  gateway: ServingProcess,
): Promise<readonly [live: string, revoked: string]> {
  await sluice(folder, "accounts create Shop");
  await sluice(folder, "applications create search --account Shop --environment production");
  const issue = () => sluice(folder, "keys create --application search --plan pilot");
  const [live, revoked] = [await issue(), await issue()];
  const [, publicId = ""] = revoked.split("_");
  const onDisk = (): string => {
    const path = join(folder.dataDir, "keys");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  };
  await until(async () => onDisk().includes(publicId));
  const told = await runSluice([
    ..."keys revoke --yes".split(" "),
    `sk-slc_${publicId}`,
    "--config",
    folder.configPath,
  ]);
  expect(told.errors).toContain("is revoked");
  await until(async () => endsRevoked(onDisk()));
  expect(await callWith(gateway, revoked)).toBe(401);
  return [live, revoked];
}

/** Whether the last change on disk is that a key has ended. */
function endsRevoked(text: string): boolean {
  const changes = text.split("\n").filter((line) => line.includes("keyId"));
  return changes.at(-1)?.includes('"live"') === false;
}

async function sluice({ configPath }: ProcessFolder, command: string): Promise<string> {
  const { exitCode, output, errors } = await runSluice([
    ...command.split(" "),
    "--config",
    configPath,
  ]);
  if (exitCode !== 0) throw new Error(`${command}: ${errors}`);
  return output.trim();
}

function unknownKey(): string {
  return generateApiKey((target) => crypto.getRandomValues(target)).text;
}

async function readinessOf({ dataUrl }: ServingProcess): Promise<string> {
  return (await fetch(`${dataUrl}/readyz`)).text();
}

async function countCalls(gateway: ServingProcess, folder: ProcessFolder): Promise<number> {
  const { status, body } = await askAdmin(gateway, folder, "/usage/calls?limit=100");
  return status === 200 ? JSON.stringify(body).split('"req_').length - 1 : 0;
}
