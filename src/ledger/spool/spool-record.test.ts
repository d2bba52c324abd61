import { expect, test } from "bun:test";
import { closedCall } from "../../../test/support/ledger-fixtures.ts";
import { readSpoolRecord, writeClose } from "./spool-record.ts";

const attempt = {
  target: "east/m",
  model: "alpha-sonnet-4",
  startMs: 0.5,
  durationMs: 12,
  outcome: "throttled",
  mayBeBilled: false,
} as const;

test("records of an earlier version are read", () => {
  const record = closedCall("req_1");
  const read = readSpoolRecord(JSON.stringify({ close: record }));
  expect(read).toStrictEqual({ kind: "close", record });
});

test("routing and possible double billing are read back", () => {
  const candidates = [{ target: "east/m", model: "alpha-sonnet-4", why: "priority 1" }];
  const routing = { candidates, attempts: [attempt] };
  const record = closedCall("req_1", { routing, mayBeBilledTwice: true });
  expect(readSpoolRecord(writeClose(record))).toEqual({ kind: "close", record });
});

test("cache write tokens are read back, and absent in older records", () => {
  const record = closedCall("req_1", { cacheWriteTokens: 40 });
  expect(readSpoolRecord(writeClose(record))).toEqual({ kind: "close", record });
  const older = readSpoolRecord(writeClose(closedCall("req_1")));
  expect(older?.kind === "close" && "cacheWriteTokens" in older.record).toBe(false);
});

test("the record of a call with very many attempts has a bounded length", () => {
  const attempts = Array.from({ length: 100_000 }, () => attempt);
  const text = writeClose(closedCall("req_1", { routing: { candidates: [], attempts } }));
  expect(text.length).toBeLessThan(4_000);
});

test("an unreadable routing is dropped, the rest of the record is kept", () => {
  const record = closedCall("req_1");
  const text = JSON.stringify({ close: { ...record, routing: { attempts: 7 } } });
  expect(readSpoolRecord(text)).toEqual({ kind: "close", record });
});
