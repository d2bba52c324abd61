import { expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../test/support/until.ts";
import { systemClock } from "../../domain/clock.ts";
import type { SpendNote } from "../../domain/money/budget.ts";
import { openStores } from "../../store/sqlite/open-stores.ts";
import type { ProcessRow } from "../../store/process-row.ts";
import { SpendFeed, whoCounts } from "./spend-feed.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

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
const running = `mac_a@host/2-${process.pid}`;
const killed = `mac_a@host/2-${Bun.spawnSync(["true"]).pid}`;

test("all is known once the leader of the machine has stored what ended processes left", () => {
  const state = { chargesAs: "me", ingest: "none" } as const;
  const isComplete = (rows: readonly ProcessRow[], ingest: ProcessRow["ingest"] = "none") =>
    whoCounts({ own, rows: [rowOf(own), ...rows] }, { ...state, ingest }).isComplete;
  expect(whoCounts(undefined, { ...state, ingest: "done" }).isComplete).toBe(false);
  expect(isComplete([])).toBe(false);
  expect(isComplete([], "behind")).toBe(false);
  expect(isComplete([], "done")).toBe(true);
  expect(isComplete([rowOf(running, { ingest: "done" })])).toBe(true);
  expect(isComplete([rowOf(running, { ingest: "behind" })])).toBe(false);
  // The leader of another machine knows nothing of this one's spools.
  const other = "mac_b@other/1-10";
  expect(isComplete([rowOf(other, { ingest: "done" })])).toBe(false);
  expect(isComplete([rowOf(other, { ingest: "behind" })], "done")).toBe(false);
});

test("a leader that was killed does not vouch for what it left", () => {
  const rows = [rowOf(own), rowOf(killed, { ingest: "done" })];
  expect(whoCounts({ own, rows }, { chargesAs: "me", ingest: "none" }).isComplete).toBe(false);
});

test("a process counts while it gives signs, and this one by what it is now", () => {
  const gone = { silentMs: 60_000, ingest: "behind" } as const;
  const rows = [
    rowOf(own, { chargesAs: "before" }),
    rowOf("mac_b@other/1-10", { silentMs: 3_000 }),
    rowOf("mac_b@other/2-11", { chargesAs: undefined }),
    rowOf("mac_c@gone/1-10", gone),
  ];
  const { processes, silent, isComplete } = whoCounts(
    { own, rows },
    { chargesAs: "me", ingest: "done" },
  );
  expect(processes).toEqual(["me", "of mac_b@other/1-10"]);
  expect(silent).toEqual(["of mac_c@gone/1-10"]);
  expect(isComplete).toBe(true);
});

test("what was known of processes stays while the database is read but not written", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "sluice-spend-feed-")), "sluice.db");
  const stores = openStores(path, systemClock, { peppers: testPeppers() });
  let seen: Parameters<typeof whoCounts>[0];
  const notes: SpendNote[] = [];
  const feed = new SpendFeed({
    store: stores.spend,
    clock: systemClock,
    rows: () => seen,
    state: () => ({ chargesAs: "me", ingest: "done" }),
    tell: (note) => void notes.push(note),
  });
  feed.start();
  await until(() => notes.length > 0);
  expect(notes.at(-1)?.isComplete).toBe(false);
  seen = { own, rows: [rowOf(own), rowOf(running)] };
  await until(() => notes.at(-1)?.isComplete === true);
  seen = undefined;
  const told = notes.length;
  await until(() => notes.length > told);
  await feed.stop();
  const processes = ["me", `of ${running}`];
  expect(notes.at(-1)).toMatchObject({ isComplete: true, processes, silent: [] });
});
