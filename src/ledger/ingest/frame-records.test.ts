import { expect, test } from "bun:test";
import { closedCall, openedCall, randomOf } from "../../../test/support/ledger-fixtures.ts";
import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";
import { headerBytes, longestPayloadBytes } from "../spool/frame.ts";
import type { SpoolRecord } from "../spool/spool-record.ts";
import { TurnFrame } from "../spool/turn-frame.ts";
import { readFrame } from "./frame-records.ts";

/** The payload of a frame with these records. */
function payloadOf(records: readonly SpoolRecord[], frame = new TurnFrame()): Buffer {
  for (const record of records) {
    if (record.kind === "open") frame.open(record.call);
    else if (record.kind === "close") frame.close(record.record);
    else frame.checkpoint(record.id, record.delivered);
  }
  return Buffer.from(frame.take().subarray(headerBytes));
}

function readAll(payload: Buffer) {
  const frame = readFrame(payload);
  const records: SpoolRecord[] = [];
  for (let next = frame.next(); next !== undefined; next = frame.next()) records.push(next);
  return { records, unreadBytes: frame.unreadBytes };
}

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
  const attempt = { target: "a/b", model: "m", startMs: 0.5, durationMs: 1, mayBeBilled: true };
  const routing = {
    candidates: [{ target: "a/b", model: "m", why: "priority 1, größer" }],
    attempts: [{ ...attempt, outcome: "throttled" as const }],
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

test("any records are read as they were recorded, over frames of one writer", () => {
  const random = randomOf(7);
  const frame = new TurnFrame();
  for (let turn = 0; turn < 200; turn += 1) {
    const written = Array.from({ length: 1 + Math.floor(random() * 6) }, (_, id): SpoolRecord => {
      const draw = random();
      if (draw < 0.4) return { kind: "open", call: anyCall(random, id) };
      if (draw < 0.8) return { kind: "close", record: anyRecord(random, id) };
      const delivered = { outputTokens: 7, at: 1_700_000_000_123 };
      return { kind: "checkpoint", id: `req_${id}`, delivered };
    });
    const read = readAll(payloadOf(written, frame));
    expect(read).toEqual({ records: written, unreadBytes: 0 });
  }
});

test("records of the same key, model and target have their texts once in a frame", () => {
  const long = { application: "a".repeat(500), target: "t".repeat(500), model: "m".repeat(500) };
  const records = Array.from({ length: 100 }, (_, call): SpoolRecord => {
    return { kind: "close", record: closedCall(`req_${call}`, long) };
  });
  const alone = payloadOf(records.slice(0, 1)).length;
  expect(payloadOf(records).length).toBeLessThan(alone + 100 * 150);
});

test("the routing of a call with very many attempts has a bounded length", () => {
  const attempt = { target: "a/b", model: "m", startMs: 1, durationMs: 1, mayBeBilled: false };
  const attempts = Array.from({ length: 100_000 }, () => ({
    ...attempt,
    outcome: "throttled" as const,
  }));
  const record = closedCall("req_1", { routing: { candidates: [], attempts } });
  expect(payloadOf([{ kind: "close", record }]).length).toBeLessThan(4_000);
});

test("a record that readers would reject is not taken, and the others of its turn are", () => {
  const frame = new TurnFrame();
  frame.open(openedCall("req_1"));
  const application = "x".repeat(longestPayloadBytes);
  expect(() => frame.open(openedCall("req_2", { application }))).toThrow(RangeError);
  frame.open(openedCall("req_3", { application: "short", model: "other" }));
  const { records } = readAll(Buffer.from(frame.take().subarray(headerBytes)));
  expect(records).toEqual([
    { kind: "open", call: openedCall("req_1") },
    { kind: "open", call: openedCall("req_3", { application: "short", model: "other" }) },
  ]);
});

test("a cut or changed payload is read without an error, and what is unread is counted", () => {
  const call = openedCall("req_1");
  const record = closedCall("req_2");
  const payload = payloadOf([
    { kind: "open", call },
    { kind: "close", record },
  ]);
  const whole = readAll(payload).records;
  for (let length = 1; length < payload.length; length += 1) {
    const { records, unreadBytes } = readAll(payload.subarray(0, length));
    expect(records).toEqual(whole.slice(0, records.length));
    expect(unreadBytes).toBeLessThan(length);
  }
  for (let at = 0; at < payload.length; at += 1) {
    const changed = Buffer.from(payload);
    changed[at] = 0xff;
    expect(readAll(changed).records.length).toBeLessThanOrEqual(2);
  }
});

test("a payload of a later version is left unread", () => {
  const payload = payloadOf([{ kind: "open", call: openedCall("req_1") }]);
  payload[0] = 2;
  expect(readAll(payload)).toEqual({ records: [], unreadBytes: payload.length });
});
