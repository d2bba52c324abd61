import { expect, test } from "bun:test";
import { replicaDifferences } from "./replica-differences.ts";
import type { Replica } from "./replica.ts";

function replicaOf(name: string, more: Partial<Replica> = {}): Replica {
  return {
    id: `rep_${name}`,
    name,
    version: "1.2.3",
    startedAt: 0,
    configuredAt: 0,
    configDigest: "abc",
    limitsDigest: "5e4f",
    pepperMarks: "new,old",
    keysEpoch: 7,
    workers: 2,
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
  expect(found?.text).toContain("in the memory of b (http://b:8081), which grants every plan");
});

test("different servers of limits are told with who uses them", () => {
  const other = replicaOf("c", { limitsDigest: "90ab" });
  const [found] = replicaDifferences([replicaOf("a"), replicaOf("b"), other]);
  expect(found?.kind).toBe("limits-differ");
  expect(found?.text).toContain("5e4f of a (http://a:8081), b (http://b:8081); 90ab of c");
});

test("peppers may differ in their order, but each gateway must know the first of all others", () => {
  const turned = replicaOf("b", { pepperMarks: "old,new" });
  expect(kindsOf(replicaOf("a"), turned)).toEqual([]);
  const [found] = replicaDifferences([replicaOf("a"), replicaOf("b", { pepperMarks: "old" })]);
  expect(found?.text).toContain("auth.peppers of b (http://b:8081) lacks the first pepper");
  // The older one is only read.
  expect(kindsOf(replicaOf("a"), replicaOf("b", { pepperMarks: "new" }))).toEqual([]);
});

test("gateways of which one has a copy of the other's data directory are named", () => {
  const [found] = replicaDifferences([replicaOf("a"), replicaOf("b", { id: "rep_a+5" })]);
  expect(found?.kind).toBe("folder-copied");
  expect(found?.text).toContain("(a (http://a:8081), b (http://b:8081))");
  expect(kindsOf(replicaOf("a"), replicaOf("b", { id: "rep_b+5" }))).toEqual([]);
});

test("silent gateways, and those that do not tell, are not compared", () => {
  const older = { limitsDigest: undefined, pepperMarks: undefined };
  expect(kindsOf(replicaOf("a"), replicaOf("b", older))).toEqual([]);
  const silent = replicaOf("b", { limitsDigest: "memory", pepperMarks: "x", silentMs: 11_000 });
  expect(kindsOf(replicaOf("a"), silent)).toEqual([]);
});
