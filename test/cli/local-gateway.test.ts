import { afterAll, beforeAll, expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { writeFileSync } from "node:fs";
import { makeProcessFolder, type ProcessFolder } from "../failures/outage-process.ts";
import {
  startServing,
  type FinishedCommand,
  type ServingProcess,
} from "../support/sluice-process.ts";
import { runHere } from "./run-here.ts";

let folder: ProcessFolder;
let gateway: ServingProcess;
beforeAll(async () => {
  folder = makeProcessFolder();
  gateway = await startServing(["--config", folder.configPath]);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** Runs a command whose file has this text. */
function runWith(text: string, ...command: readonly string[]): Promise<FinishedCommand> {
  const path = join(dirname(folder.configPath), "other.yaml");
  writeFileSync(path, text);
  return runHere([...command, "--config", path]);
}

test("a gateway starts with a data directory that does not exist, whatever its database is", async () => {
  await using missing = makeProcessFolder({ storageUrl: "sqlite::memory:" });
  await using started = await startServing(["--config", missing.configPath]);
  expect(started.dataUrl).toStartWith("http://");
});

const commands = [["status"], ["processes"], ["keys", "list"], ["refusals"]];

test("commands for the running gateway need only data_dir of its file", async () => {
  const lacking = `
data_dir: ${folder.dataDir}
modles: a typo
upstreams: { bedrock: { kind: bedrock, api_key: "\${NOT_SET}" } }
`;
  for (const command of commands) {
    const { exitCode, errors } = await runWith(lacking, ...command);
    expect([command, exitCode, errors.includes("NOT_SET")]).toEqual([command, 0, false]);
  }
  const unset = await runWith("data_dir: ${NOT_SET:-}\n", "status");
  expect(unset.exitCode).toBe(1);
});

test("a file whose data_dir cannot be read is told with the other ways to name the gateway", async () => {
  for (const text of ["data_dir: ${NOT_SET}\n", "data_dir: [a, b]\n", "- [", "data_dir: {\n"]) {
    const { exitCode, errors } = await runWith(text, "status");
    expect(exitCode).toBe(1);
    expect(errors).toContain("other.yaml: data_dir cannot be read");
    expect(errors).toContain("--data-dir DIR, or with --url and --token-file");
    expect(errors).toContain("check-config");
    const restart = await runWith(text, "restart");
    expect([restart.exitCode, restart.errors.includes("--data-dir DIR")]).toEqual([1, true]);
  }
  const missing = await runHere(["keys", "list", "--config", "/nowhere/sluice.yaml"]);
  expect(missing.errors).toContain("--data-dir DIR");
});

test("the data directory alone is enough, also for a restart", async () => {
  const broken = { environment: { configPath: "/nowhere/sluice.yaml" } };
  const place = ["--data-dir", folder.dataDir];
  expect((await runHere(["status", ...place], broken)).exitCode).toBe(0);
  const { exitCode, errors } = await runHere(["restart", ...place], broken);
  expect([exitCode, errors]).toEqual([0, "restarted\n"]);
}, 180_000);
