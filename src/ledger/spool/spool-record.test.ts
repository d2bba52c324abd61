import { expect, test } from "bun:test";
import { closedCall, randomOf } from "../../../test/support/ledger-fixtures.ts";
import { callDialects, type OpenedCall, type UsageRecord } from "../../domain/usage/usage.ts";
import { readCall, readRecord, writeCheckpoint, writeClose, writeOpen } from "./spool-record.ts";

const attempt = {
  target: "a/b",
  model: "m",
  startMs: 1,
  durationMs: 1,
  outcome: "throttled",
  mayBeBilled: false,
} as const;

const texts = ["", "a", "längere Namen", "😀 and a\u0000b", "x".repeat(5_000)];
const numbers = [0, 1, 17, 2 ** 31, 2 ** 53 - 1, 0.1, 1_700_000_000_123, 12.345678901234567];

function anyCall(random: () => number, id: number): OpenedCall {
  const one = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] ?? (values[0] as Value);
  const text = (): string => one(texts);
  return {
    id: `req_${id}`,
    startedAt: one(numbers),
    environment: text(),
    accountId: text(),
    applicationId: text(),
    application: text(),
    keyId: text(),
    model: text(),
    dialect: one(callDialects),
    capacityClass: one(["provisioned", "spillover", "on-demand"]),
    isStreamed: random() < 0.5,
    inputTokens: one(numbers),
    reservedTokens: one([undefined, ...numbers]),
  };
}

function anyRecord(random: () => number, id: number): UsageRecord {
  const one = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] ?? (values[0] as Value);
  const routing = {
    candidates: [{ target: "a/b", model: "m", why: "priority 1, größer" }],
    attempts: [{ ...attempt, startMs: 0.5, mayBeBilled: true }],
  };
  return {
    ...anyCall(random, id),
    target: one([undefined, ...texts]),
    outputTokens: one(numbers),
    cachedInputTokens: one(numbers),
    cacheWriteTokens: one([undefined, ...numbers]),
    usageSource: one(["upstream", "counted", "estimated"]),
    outcome: one(["completed", "failed", "abandoned", "interrupted"]),
    status: one([200, 499, 503]),
    code: one([undefined, "rate_limit_exceeded", ""]),
    attempts: one([0, 1, 3]),
    firstEventMs: one([undefined, ...numbers]),
    durationMs: one(numbers),
    mayBeBilledTwice: one([undefined, false, true]),
    routing: one([undefined, routing]),
  };
}

function isOneLine(line: string): boolean {
  return !line.includes("\n");
}

test("any record is one line, and is read as it was recorded", () => {
  const random = randomOf(7);
  for (let number = 0; number < 1_000; number += 1) {
    const call = anyCall(random, number);
    const opened = writeOpen(call);
    expect([isOneLine(opened), readCall(opened)]).toEqual([true, call]);
    expect(readRecord(opened)).toEqual({ kind: "open", id: call.id, line: opened });
    const record = anyRecord(random, number);
    const closed = writeClose(record);
    expect(isOneLine(closed)).toBe(true);
    expect(readRecord(closed)).toEqual({ kind: "close", record });
  }
});

test("a checkpoint is one line, and is read as it was recorded", () => {
  const delivered = { outputTokens: 7, at: 1_700_000_000_123 };
  const line = writeCheckpoint("req_7", delivered);
  expect(isOneLine(line)).toBe(true);
  expect(readRecord(line)).toEqual({ kind: "checkpoint", id: "req_7", delivered });
});

test("the routing of a call with very many attempts has a bounded length", () => {
  const attempts = Array.from({ length: 100_000 }, () => attempt);
  const record = closedCall("req_1", { routing: { candidates: [], attempts } });
  expect(writeClose(record).length).toBeLessThan(4_000);
});

test("an unreadable routing is dropped, and fields of later versions do no harm", () => {
  const record = closedCall("req_1");
  const text = JSON.stringify({ close: { ...record, routing: { attempts: 7 }, later: [1] } });
  const later = { later: [1] };
  expect(readRecord(text)).toEqual({ kind: "close", record: { ...record, ...later } });
});

test("other texts are no records", () => {
  const { id, ...nameless } = closedCall("req_1");
  const texts = ["", "{", "7", "{}", JSON.stringify({ close: nameless }), `{"open":"${id}"}`];
  expect(texts.map((text) => readRecord(text))).toEqual(texts.map(() => undefined));
});
