import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runtimeSettings } from "./runtime-settings.ts";
import { startWorker } from "./worker.ts";

test("a worker has the settings of the runtime, and the operator's own before them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-worker-"));
  try {
    const path = join(folder, "environment.json");
    const script = `await Bun.write(${JSON.stringify(path)}, JSON.stringify(process.env))`;
    const worker = startWorker(
      {
        command: [process.execPath, "-e", script],
        environment: { BUN_GC_TIMER_INTERVAL: "500", HOME: "/home" },
      },
      () => undefined,
    );
    expect((await worker.ended).exitCode).toBe(0);
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
