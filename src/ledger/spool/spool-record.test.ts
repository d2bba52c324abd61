import { expect, test } from "bun:test";
import { closedCall, randomOf } from "../../../test/support/ledger-fixtures.ts";
import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";
import { readRecord, writeRecord, type SpoolRecord } from "./spool-record.ts";

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
    id: `req_${id}_${text()}`,
    startedAt: one(numbers),
    environment: text(),
    accountId: text(),
    applicationId: text(),
    application: text(),
    keyId: text(),
    model: text(),
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

test("any record is one line, and is read as it was recorded", () => {
  const random = randomOf(7);
  for (let id = 0; id < 1_000; id += 1) {
    const draw = random();
    const delivered = { outputTokens: 7, at: 1_700_000_000_123 };
    const record: SpoolRecord =
      draw < 0.4
        ? { kind: "open", call: anyCall(random, id) }
        : draw < 0.8
          ? { kind: "close", record: anyRecord(random, id) }
          : { kind: "checkpoint", id: `req_${id}`, delivered };
    const line = writeRecord(record);
    expect(line.indexOf("\n")).toBe(line.length - 1);
    expect(readRecord(line)).toEqual(record);
  }
});

test("the routing of a call with very many attempts has a bounded length", () => {
  const attempts = Array.from({ length: 100_000 }, () => attempt);
  const record = closedCall("req_1", { routing: { candidates: [], attempts } });
  expect(writeRecord({ kind: "close", record }).length).toBeLessThan(4_000);
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
