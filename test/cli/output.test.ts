import { afterEach, beforeEach, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../support/ledger-truth-process.ts";
import { ReadablePipe } from "../support/readable-pipe.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const printer = fileURLToPath(new URL("print-much.ts", import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-output-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly exitCode: number;
  readonly errors: string;
}

/** Runs a program whose standard output is an open file. */
async function runInto(stdout: number, ...command: readonly string[]): Promise<Ended> {
  const child = Bun.spawn([process.execPath, ...command], {
    stdio: ["ignore", stdout, "pipe"],
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" },
  });
  closeSync(stdout);
  const [errors, exitCode] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return { exitCode, errors };
}

test.each([[["--help"]], [["keys", "--help"]], [["--version"]]])(
  "a command whose reader has gone ends without a word: %p",
  async (args) => {
    using pipe = new ReadablePipe(folder);
    const writer = pipe.openWriter();
    pipe.close();
    expect(await runInto(writer, main, ...args)).toEqual({ exitCode: 0, errors: "" });
  },
);

test("results that a full disk does not take are a failure", async () => {
  const ended = await runInto(openSync("/dev/full", "a"), main, "--help");
  const errors = "sluice: standard output cannot be written (ENOSPC)\n";
  expect(ended).toEqual({ exitCode: 1, errors });
});

test("a slow reader gets everything", async () => {
  using pipe = new ReadablePipe(folder);
  const ending = runInto(pipe.openWriter(), printer);
  await until("the pipe is full", () => pipe.read().length > 0);
  await until("all of it came", () => pipe.read().length === 5_000_000);
  expect(await ending).toEqual({ exitCode: 0, errors: "" });
  const lines = pipe.read().split("\n");
  expect(lines).toHaveLength(50_001);
  expect(lines.every((line, index) => index === 50_000 || line.startsWith(`${index} x`))).toBe(
    true,
  );
});

test("a reader that leaves in the middle ends the command without a word", async () => {
  using pipe = new ReadablePipe(folder);
  const ending = runInto(pipe.openWriter(), printer);
  await until("the output has begun", () => pipe.read().length > 0);
  pipe.close();
  expect(await ending).toEqual({ exitCode: 0, errors: "" });
});
