import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { cpuMicroseconds, memoryBytes, processesOf } from "./process-usage.ts";

const busyMicroseconds = 300_000;
const spin = `while (process.cpuUsage().user < ${busyMicroseconds});`;
/** A program whose child does the work and ends before it says so. */
const parent = `
  Bun.spawnSync([process.execPath, "-e", ${JSON.stringify(spin)}]);
  console.log("done");
  setInterval(() => {}, 1000);
`;

test("the CPU time of a process includes that of a child that has ended", async () => {
  const child = Bun.spawn([process.execPath, "-e", parent], { stdout: "pipe" });
  await child.stdout.getReader().read();
  const pids = processesOf(child.pid);
  const used = cpuMicroseconds(pids);
  child.kill();
  await child.exited;
  expect(pids).toEqual([child.pid]);
  // The kernel counts in hundredths of a second.
  expect(used).toBeGreaterThan(busyMicroseconds - 20_000);
});

test("memory counts what a process has written, and the program that it shares with others", async () => {
  const bytes = 50_000_000;
  const program = `globalThis.kept = new Uint8Array(${bytes}).fill(1); console.log("done"); setInterval(() => {}, 1000);`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe" });
  await child.stdout.getReader().read();
  const used = memoryBytes([child.pid]);
  const file = Number(
    /RssFile:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1],
  );
  child.kill();
  await child.exited;
  expect(file).toBeGreaterThan(0);
  expect(used).toBeGreaterThan(bytes + file * 1_024);
});
