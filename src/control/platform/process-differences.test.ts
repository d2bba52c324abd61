import { expect, test } from "bun:test";
import { processDifferences } from "./process-differences.ts";
import type { ProcessRow } from "../../store/process-row.ts";

function rowOf(name: string, more: Partial<ProcessRow> = {}): ProcessRow {
  return {
    id: `mac_0@${name}/1-4711`,
    name,
    number: 1,
    version: "1.2.3",
    startedAt: 0,
    configuredAt: 0,
    configDigest: "abc",
    limitsDigest: "5e4f",
    pepperMarks: "new,old",
    keysEpoch: 7,
    chargesAs: undefined,
    ingest: "none",
    adminUrl: `http://${name}:8081`,
    notReady: undefined,
    degraded: undefined,
    silentMs: 0,
    ...more,
  };
}

const kindsOf = (...processes: readonly ProcessRow[]) =>
  processDifferences(processes).map(({ kind }) => kind);

test("equal gateways, and a single one, are in order", () => {
  expect(kindsOf(rowOf("a"), rowOf("b"))).toEqual([]);
  expect(kindsOf(rowOf("a", { limitsDigest: "memory" }))).toEqual([]);
});

test("several gateways with limits in memory are named", () => {
  const alone = rowOf("b", { limitsDigest: "memory" });
  const [found, ...others] = processDifferences([rowOf("a"), alone]);
  expect([found?.kind, others]).toEqual(["limits-in-memory", []]);
  expect(found?.text).toContain(
    "in the memory of process 1 of b, which grants every plan and every budget",
  );
});

test("different servers of limits are told with who uses them", () => {
  const other = rowOf("c", { limitsDigest: "90ab" });
  const [found] = processDifferences([rowOf("a"), rowOf("b"), other]);
  expect(found?.kind).toBe("limits-differ");
  expect(found?.text).toContain("5e4f of process 1 of a, process 1 of b; 90ab of process 1 of c");
});

test("peppers may differ in their order, but each gateway must know the first of all others", () => {
  const turned = rowOf("b", { pepperMarks: "old,new" });
  expect(kindsOf(rowOf("a"), turned)).toEqual([]);
  const [found] = processDifferences([rowOf("a"), rowOf("b", { pepperMarks: "old" })]);
  expect(found?.text).toContain("auth.peppers of process 1 of b lacks the first pepper");
  // The older one is only read.
  expect(kindsOf(rowOf("a"), rowOf("b", { pepperMarks: "new" }))).toEqual([]);
});

test("the processes of one host are compared like those of several", () => {
  const second = rowOf("a", { id: "mac_0@a/2-4712", number: 2, limitsDigest: "memory" });
  expect(kindsOf(rowOf("a"), second)).toEqual(["limits-in-memory"]);
});

test("a process is not compared with the one that it replaces", () => {
  const before = { limitsDigest: "memory", pepperMarks: "old", startedAt: 1_000 };
  const next = rowOf("a", { id: "mac_0@a/1-4712", startedAt: 2_000 });
  for (const both of [
    [rowOf("a", before), next],
    [next, rowOf("a", before)],
  ]) {
    expect(kindsOf(...both)).toEqual([]);
    expect(kindsOf(...both, rowOf("b"))).toEqual([]);
  }
  const later = rowOf("a", { ...before, startedAt: 3_000 });
  expect(kindsOf(next, later, rowOf("b"))).toEqual(["limits-in-memory", "peppers-differ"]);
});

test("silent gateways, and those that do not tell, are not compared", () => {
  const older = { limitsDigest: undefined, pepperMarks: undefined };
  expect(kindsOf(rowOf("a"), rowOf("b", older))).toEqual([]);
  const silent = rowOf("b", { limitsDigest: "memory", pepperMarks: "x", silentMs: 11_000 });
  expect(kindsOf(rowOf("a"), silent)).toEqual([]);
});
