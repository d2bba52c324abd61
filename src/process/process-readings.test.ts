import { expect, test } from "bun:test";
import { testWhere } from "../../test/support/requirement.ts";
import { readOwnProcess, readProcess } from "./process-readings.ts";

const now = (): number => Date.now() / 1_000;

test("a process reads what it uses", () => {
  const own = readOwnProcess("1");
  expect(own.worker).toBe("1");
  expect(own.cpuSeconds).toBeGreaterThan(0);
  expect(own.residentBytes).toBeGreaterThan(1_000_000);
  expect(own.startedAt).toBeGreaterThan(1_600_000_000);
  expect(own.startedAt).toBeLessThanOrEqual(now());
});

const testOnLinux = testWhere(process.platform === "linux", "this system has no /proc");

testOnLinux("Linux tells of another process what that process reads itself", () => {
  const [own, read] = [readOwnProcess("1"), readProcess(process.pid, "supervisor")];
  expect(read?.worker).toBe("supervisor");
  expect(read?.openFiles).toBeGreaterThan(0);
  expect(read?.mostFiles).toBe(own.mostFiles ?? -1);
  // The system counts in hundredths of a second, and rounds the time of its own start to a second.
  expect(Math.abs((read?.startedAt ?? 0) - own.startedAt)).toBeLessThan(5);
  expect(Math.abs((read?.residentBytes ?? 0) / own.residentBytes - 1)).toBeLessThan(0.5);
  expect(read?.cpuSeconds).toBeLessThanOrEqual(readOwnProcess("1").cpuSeconds + 0.1);
});

testOnLinux("there is nothing to read of a process that is gone", async () => {
  const child = Bun.spawn(["true"]);
  await child.exited;
  expect(readProcess(child.pid, "supervisor")).toBeUndefined();
});
