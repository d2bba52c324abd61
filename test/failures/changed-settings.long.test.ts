import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { quietPort } from "../support/free-port.ts";
import { until } from "../support/ledger-truth-process.ts";
import { createKeyOf } from "../support/process-key.ts";
import { runSluice, startServing, type ServingProcess } from "../support/sluice-process.ts";
import { callWith, makeProcessFolder, type ProcessFolder } from "./outage-process.ts";

/** Settings that only a restart changes. */

function edit({ configPath }: ProcessFolder, from: string, to: string): void {
  const text = readFileSync(configPath, "utf8");
  expect(text).toContain(from);
  writeFileSync(configPath, text.replace(from, to));
}

const firstPort = `listen: { data: "127.0.0.1:0"`;
const portIs = (port: number): string => `listen: { data: "127.0.0.1:${port}"`;

test("a restart at the port of another gateway is refused, and its callers notice nothing", async () => {
  await using folder = makeProcessFolder();
  await using other = makeProcessFolder();
  const [port, otherPort] = [quietPort(), quietPort()];
  edit(folder, firstPort, portIs(port));
  edit(other, firstPort, portIs(otherPort));
  const key = await createKeyOf(other.configPath);
  await using serving = await startServing(["--config", folder.configPath]);
  await using otherServing = await startServing(["--config", other.configPath]);
  const { processPid } = serving;
  edit(folder, portIs(port), portIs(otherPort));
  const { exitCode, errors } = await runSluice(["restart", "--config", folder.configPath]);
  expect(errors).toContain(`cannot listen at http://127.0.0.1:${otherPort}`);
  expect([exitCode, serving.processPid]).toEqual([1, processPid]);
  expect(await callWith(otherServing, key)).toBe(200);
  edit(folder, portIs(otherPort), portIs(port));
  expect(await runSluice(["restart", "--config", folder.configPath])).toMatchObject({
    exitCode: 0,
  });
}, 180_000);

test("a process that crashes returns with the settings it had, until a restart changes them", async () => {
  await using folder = makeProcessFolder();
  const key = await createKeyOf(folder.configPath);
  await using serving = await startServing(["--config", folder.configPath]);
  edit(folder, `sqlite:${folder.databasePath}`, `sqlite:${folder.databasePath}-missing`);
  edit(folder, "embed-text-v2", "embed-text-v3");
  await until("the change is noticed", () =>
    serving.text().includes("changes that take effect only after a restart: storage"),
  );
  for (let kill = 0; kill < 2; kill += 1) await crash(serving);
  // The model has another name now, which needs no restart.
  expect(await callWith(serving, key)).toBe(400);
  const { exitCode, errors } = await runSluice(["restart", "--config", folder.configPath]);
  expect([exitCode, errors.includes("-missing is missing")]).toEqual([1, true]);
}, 180_000);

test("a restart with a database that does not answer is refused if no keys are known without it", async () => {
  await using folder = makeProcessFolder();
  const key = await createKeyOf(folder.configPath);
  await using serving = await startServing(["--config", folder.configPath]);
  const { processPid } = serving;
  edit(folder, `sqlite:${folder.databasePath}`, `postgres://127.0.0.1:${quietPort()}/sluice`);
  const { exitCode, errors } = await runSluice(["restart", "--config", folder.configPath]);
  expect(errors).toContain("keys are not loaded yet: the database does not answer");
  expect([exitCode, serving.processPid]).toEqual([1, processPid]);
  expect(await callWith(serving, key)).toBe(200);
}, 180_000);

async function crash(serving: ServingProcess): Promise<void> {
  const { processPid } = serving;
  process.kill(processPid, "SIGKILL");
  await until("another process serves", async () => {
    const answer = await fetch(`${serving.dataUrl}/readyz`, { keepalive: false }).catch(() => null);
    return answer?.status === 200 && serving.processPid !== processPid;
  });
}
