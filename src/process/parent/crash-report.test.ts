import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { keptReports, writeCrashReport, type Crash } from "./crash-report.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-crash-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const crash: Crash = {
  at: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  number: 2,
  pid: 4711,
  uptimeMs: 1234.5,
  exitCode: undefined,
  signal: "SIGSEGV",
  peakResidentBytes: 5_000_000,
  restarts: 2,
  hasServed: true,
  failure: undefined,
};

test("a report says when and how a process ended, readable only by its owner", () => {
  const path = writeCrashReport(crash, folder, "1.2.3");
  expect(basename(path)).toBe("2026-01-02T03-04-05.678Z-4711.json");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "crashes")).mode & 0o777).toBe(0o700);
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
    version: "1.2.3",
    time: "2026-01-02T03:04:05.678Z",
    process: 2,
    pid: 4711,
    uptime_ms: 1235,
    exit_code: null,
    signal: "SIGSEGV",
    restarts: 2,
    memory: { peak_resident_bytes: 5_000_000, resident_bytes: null },
    exception: null,
  });
});

test("a report of an exception has its class and positions", () => {
  const failure = {
    kind: "failure",
    error: "TypeError",
    positions: ["run (src/x.ts:1:2)"],
    residentBytes: 7,
  } as const;
  const ended = { ...crash, exitCode: 1, signal: undefined, failure };
  const report: unknown = JSON.parse(readFileSync(writeCrashReport(ended, folder, "1"), "utf8"));
  expect(report).toMatchObject({
    exit_code: 1,
    signal: null,
    memory: { resident_bytes: 7 },
    exception: { error: "TypeError", at: ["run (src/x.ts:1:2)"] },
  });
});

test("only the newest reports are kept", () => {
  const paths = Array.from({ length: keptReports + 5 }, (_, minutes) =>
    writeCrashReport({ ...crash, at: crash.at + minutes * 60_000 }, folder, "1"),
  );
  const kept = paths.slice(-keptReports).map((path) => basename(path));
  expect(readdirSync(join(folder, "crashes")).toSorted()).toEqual(kept);
});
