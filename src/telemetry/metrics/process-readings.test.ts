import { expect, test } from "bun:test";
import { testWhere } from "../../../test/support/requirement.ts";
import { processFamilies } from "./process-readings.ts";

function valueOf(name: string): number {
  return processFamilies().find((family) => family.name === name)?.series[0]?.value ?? NaN;
}

test("a process reads what it uses", () => {
  const before = valueOf("process_cpu_seconds_total");
  expect(before).toBeGreaterThan(0);
  expect(valueOf("process_cpu_seconds_total")).toBeGreaterThanOrEqual(before);
  expect(valueOf("process_resident_memory_bytes")).toBeGreaterThan(1_000_000);
  expect(valueOf("process_start_time_seconds")).toBeGreaterThan(1_600_000_000);
  expect(valueOf("process_start_time_seconds")).toBeLessThanOrEqual(Date.now() / 1_000);
});

const testOnLinux = testWhere(process.platform === "linux", "this system has no /proc");

testOnLinux("Linux tells how many files are open, and how many may be", () => {
  expect(valueOf("process_open_fds")).toBeGreaterThan(2);
  expect(valueOf("process_max_fds")).toBeGreaterThanOrEqual(valueOf("process_open_fds"));
});
