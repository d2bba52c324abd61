import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { spoolPaths } from "../support/ledger-fixtures.ts";
import { planCall, wholeMix } from "../support/ledger-truth-mix.ts";
import { ProcessBench, until, untilStored } from "../support/ledger-truth-process.ts";
import { Random } from "../../simulator/answer/random.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

let bench: ProcessBench;
beforeEach(async () => {
  bench = await ProcessBench.create({ keys: 1 });
});
afterEach(() => bench[Symbol.asyncDispose]());

function makeFifo(path: string): void {
  const { exitCode } = Bun.spawnSync(["mkfifo", path]);
  if (exitCode !== 0) throw new Error(`mkfifo ${path} failed`);
}

/** The output of a command; one that hangs is killed, which its exit code shows. */
async function sluice(...args: readonly string[]): Promise<{ exitCode: number; errors: string }> {
  const child = Bun.spawn([process.execPath, main, ...args], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    timeout: 20_000,
    killSignal: "SIGKILL",
  });
  const [errors, exitCode] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return { exitCode, errors };
}

test("files of a spool that may not be read are skipped, and each is logged once", async () => {
  await using before = await bench.serve();
  const planned = [planCall(wholeMix, new Random(1), "only")];
  await bench.call(before, { from: 0, count: 1 }, () => planned.pop());
  before.kill();
  await before.exited;
  const spool = join(bench.folder, "data", "spool");
  const [path = ""] = spoolPaths(spool);
  expect(path).not.toBe("");
  const odd = (number: number): string => join(dirname(path), `0000${number}.spool`);
  symlinkSync("00009005.spool", odd(9005));
  symlinkSync("missing", odd(9006));

  await using serving = await bench.serve();
  await untilStored(serving);
  const logged = serving
    .text()
    .split("\n")
    .filter((line) => line.includes("is skipped"));
  expect(
    logged.map((line) => /path=\S*(0000\d+)\.spool reason=(.*)$/.exec(line)?.slice(1)),
  ).toEqual([
    ["00009005", "ELOOP"],
    ["00009006", "ENOENT"],
  ]);
  expect((await fetch(`${serving.dataUrl}/readyz`)).status).toBe(200);
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(0);
  expect((await bench.stored()).rows).toHaveLength(1);
});

test("a FIFO in place of the configuration ends the start with a message", async () => {
  rmSync(bench.configPath, { force: true });
  makeFifo(bench.configPath);
  const { exitCode, errors } = await sluice("serve", "--config", bench.configPath);
  expect(errors).toContain("sluice.yaml: is a FIFO");
  expect(exitCode).toBe(1);
});

test("a command that reads a configuration does not wait for a FIFO either", async () => {
  const path = join(bench.folder, "fifo.yaml");
  makeFifo(path);
  const { exitCode, errors } = await sluice("check-config", path);
  expect(errors).toContain("fifo.yaml: is a FIFO");
  expect(exitCode).toBe(1);
});

test("a configuration that a FIFO replaces is refused, and the gateway continues", async () => {
  await using serving = await bench.serve();
  renameSync(bench.configPath, `${bench.configPath}.kept`);
  makeFifo(bench.configPath);
  serving.signal("SIGHUP");
  await until("it is logged", () => serving.text().includes("is a FIFO"));
  expect((await fetch(`${serving.dataUrl}/readyz`)).status).toBe(200);
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(0);
});

test("the file for the command line is written as soon as it can be", async () => {
  const path = join(bench.folder, "data", "admin-access.json");
  mkdirSync(join(path, "in the way"), { recursive: true });
  await using serving = await bench.serve();
  expect(serving.text()).toContain("the file for the command line on this machine could not be");
  expect((await sluice("status", "--config", bench.configPath)).exitCode).toBe(1);
  rmSync(path, { recursive: true });
  await until("the command reaches the gateway", async () => {
    const { exitCode } = await sluice("status", "--config", bench.configPath);
    return exitCode === 0;
  });
}, 180_000);
