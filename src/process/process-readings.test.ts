import { expect, test } from "bun:test";
import { testWhere } from "../../test/support/requirement.ts";
import { readOwnProcess } from "./process-readings.ts";

const now = () => Date.now() / 1_000;

test("a process reads what it uses", () => {
  const own = readOwnProcess();
  expect(own.cpuSeconds).toBeGreaterThan(0);
  expect(own.residentBytes).toBeGreaterThan(1_000_000);
  expect(own.startedAt).toBeGreaterThan(1_600_000_000);
  expect(own.startedAt).toBeLessThanOrEqual(now());
  expect(readOwnProcess().cpuSeconds).toBeGreaterThanOrEqual(own.cpuSeconds);
});

const testOnLinux = testWhere(process.platform === "linux", "this system has no /proc");

testOnLinux("Linux tells how many files are open, and how many may be", () => {
  const { openFiles = 0, mostFiles = 0 } = readOwnProcess();
  expect(openFiles).toBeGreaterThan(2);
  expect(mostFiles).toBeGreaterThanOrEqual(openFiles);
});
