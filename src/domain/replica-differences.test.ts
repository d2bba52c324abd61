import { expect, test } from "bun:test";
import { replicaDifferences } from "./replica-differences.ts";
import type { Replica } from "./replica.ts";

function replicaOf(name: string, more: Partial<Replica> = {}): Replica {
  return {
    id: `rep_0@${name}/1-4711`,
    name,
    number: 1,
    version: "1.2.3",
    startedAt: 0,
    configuredAt: 0,
    configDigest: "abc",
    limitsDigest: "5e4f",
    pepperMarks: "new,old",
    keysEpoch: 7,
    adminUrl: `http://${name}:8081`,
    notReady: undefined,
    degraded: undefined,
    silentMs: 0,
    ...more,
  };
}

const kindsOf = (...replicas: readonly Replica[]) =>
  replicaDifferences(replicas).map(({ kind }) => kind);

test("equal gateways, and a single one, are in order", () => {
  expect(kindsOf(replicaOf("a"), replicaOf("b"))).toEqual([]);
  expect(kindsOf(replicaOf("a", { limitsDigest: "memory" }))).toEqual([]);
});

test("several gateways with limits in memory are named", () => {
  const alone = replicaOf("b", { limitsDigest: "memory" });
  const [found, ...others] = replicaDifferences([replicaOf("a"), alone]);
  expect([found?.kind, others]).toEqual(["limits-in-memory", []]);
  expect(found?.text).toContain("in the memory of process 1 of b, which grants every plan");
});

test("different servers of limits are told with who uses them", () => {
  const other = replicaOf("c", { limitsDigest: "90ab" });
  const [found] = replicaDifferences([replicaOf("a"), replicaOf("b"), other]);
  expect(found?.kind).toBe("limits-differ");
  expect(found?.text).toContain("5e4f of process 1 of a, process 1 of b; 90ab of process 1 of c");
});

test("peppers may differ in their order, but each gateway must know the first of all others", () => {
  const turned = replicaOf("b", { pepperMarks: "old,new" });
  expect(kindsOf(replicaOf("a"), turned)).toEqual([]);
  const [found] = replicaDifferences([replicaOf("a"), replicaOf("b", { pepperMarks: "old" })]);
  expect(found?.text).toContain("auth.peppers of process 1 of b lacks the first pepper");
  // The older one is only read.
  expect(kindsOf(replicaOf("a"), replicaOf("b", { pepperMarks: "new" }))).toEqual([]);
});

test("the processes of one host are compared like those of several", () => {
  const second = replicaOf("a", { id: "rep_0@a/2-4712", number: 2, limitsDigest: "memory" });
  expect(kindsOf(replicaOf("a"), second)).toEqual(["limits-in-memory"]);
});

test("a process is not compared with the one that it replaces", () => {
  const before = { limitsDigest: "memory", pepperMarks: "old", startedAt: 1_000 };
  const next = replicaOf("a", { id: "rep_0@a/1-4712", startedAt: 2_000 });
  for (const both of [
    [replicaOf("a", before), next],
    [next, replicaOf("a", before)],
  ]) {
    expect(kindsOf(...both)).toEqual([]);
    expect(kindsOf(...both, replicaOf("b"))).toEqual([]);
  }
  const later = replicaOf("a", { ...before, startedAt: 3_000 });
  expect(kindsOf(next, later, replicaOf("b"))).toEqual(["limits-in-memory", "peppers-differ"]);
});

test("silent gateways, and those that do not tell, are not compared", () => {
  const older = { limitsDigest: undefined, pepperMarks: undefined };
  expect(kindsOf(replicaOf("a"), replicaOf("b", older))).toEqual([]);
  const silent = replicaOf("b", { limitsDigest: "memory", pepperMarks: "x", silentMs: 11_000 });
  expect(kindsOf(replicaOf("a"), silent)).toEqual([]);
});
