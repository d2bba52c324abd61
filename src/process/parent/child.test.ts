import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChild, runtimeSettings } from "./child.ts";

test("a process has the settings of the runtime, and the operator's own before them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-child-"));
  try {
    const path = join(folder, "environment.json");
    const script = `await Bun.write(${JSON.stringify(path)}, JSON.stringify(process.env))`;
    const child = startChild(
      {
        command: [process.execPath, "-e", script],
        environment: { BUN_GC_TIMER_INTERVAL: "500", HOME: "/home" },
      },
      () => undefined,
    );
    expect((await child.ended).exitCode).toBe(0);
    const environment: unknown = JSON.parse(readFileSync(path, "utf8"));
    expect(environment).toMatchObject({
      ...runtimeSettings,
      BUN_GC_TIMER_INTERVAL: "500",
      HOME: "/home",
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a process that a signal ends is told with it, and gets no messages after that", async () => {
  const child = startChild(
    { command: ["sh", "-c", "kill -SEGV $$"], environment: process.env },
    () => undefined,
  );
  expect(await child.ended).toMatchObject({ exitCode: 139, signal: "SIGSEGV" });
  child.replaced();
  child.pass("SIGTERM");
  child.kill();
});

test("a program that is not there cannot be started", () => {
  const missing = { command: ["/no/such/program"], environment: {} };
  expect(() => startChild(missing, () => undefined)).toThrow("ENOENT");
});
