import { expect, test } from "bun:test";
import type { ProcessRow } from "../../store/process-row.ts";
import { whoCounts } from "./spend-feed.ts";

function rowOf(id: string, more: Partial<ProcessRow> = {}): ProcessRow {
  return {
    id,
    name: "host",
    number: 1,
    version: "1",
    startedAt: 0,
    configuredAt: 0,
    configDigest: undefined,
    limitsDigest: undefined,
    pepperMarks: undefined,
    keysEpoch: 1,
    chargesAs: `of ${id}`,
    ingest: "none",
    adminUrl: "",
    notReady: undefined,
    degraded: undefined,
    silentMs: 0,
    ...more,
  };
}

const own = "mac_a@host/1-10";

test("all is known once the leader of the machine has stored what ended processes left", () => {
  const state = { chargesAs: "me", ingest: "none" } as const;
  const isComplete = (rows: readonly ProcessRow[], ingest: ProcessRow["ingest"] = "none") =>
    whoCounts({ own, rows: [rowOf(own), ...rows] }, { ...state, ingest }).isComplete;
  expect(whoCounts(undefined, { ...state, ingest: "done" }).isComplete).toBe(false);
  expect(isComplete([])).toBe(false);
  expect(isComplete([], "behind")).toBe(false);
  expect(isComplete([], "done")).toBe(true);
  const sibling = "mac_a@host/2-11";
  expect(isComplete([rowOf(sibling, { ingest: "done" })])).toBe(true);
  expect(isComplete([rowOf(sibling, { ingest: "behind" })])).toBe(false);
  // The leader of another machine knows nothing of this one's spools.
  const other = "mac_b@other/1-10";
  expect(isComplete([rowOf(other, { ingest: "done" })])).toBe(false);
  expect(isComplete([rowOf(other, { ingest: "behind" })], "done")).toBe(false);
});

test("a process counts until its row is gone, and this one by what it is now", () => {
  const rows = [
    rowOf(own, { chargesAs: "before" }),
    rowOf("mac_b@other/1-10", { silentMs: 60_000 }),
    rowOf("mac_b@other/2-11", { chargesAs: undefined }),
  ];
  const { processes } = whoCounts({ own, rows }, { chargesAs: "me", ingest: "done" });
  expect(processes).toEqual(["me", "of mac_b@other/1-10"]);
});

test("a process that was killed counts until another one has its place and it was silent for a while", () => {
  const killed = rowOf("mac_a@host/1-9", { silentMs: 6_000 });
  const processesOf = (...rows: readonly ProcessRow[]) =>
    whoCounts({ own, rows }, { chargesAs: "me", ingest: "done" }).processes;
  const next = rowOf(own, { startedAt: 5 });
  expect(processesOf(next, killed)).toEqual(["me"]);
  // It may be the process that this one replaces, and still serve.
  expect(processesOf(next, { ...killed, silentMs: 900 })).toHaveLength(2);
  expect(processesOf({ ...next, number: 2 }, killed)).toHaveLength(2);
  expect(processesOf(next, { ...killed, id: "mac_b@host/1-9" })).toHaveLength(2);
});
