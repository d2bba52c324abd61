import { expect, test } from "bun:test";
import { closedCall, openedCall } from "../../../test/support/ledger-fixtures.ts";
import { readJsonRecord } from "./json-record.ts";

const attempt = {
  target: "east/m",
  model: "alpha-sonnet-4",
  startMs: 0.5,
  durationMs: 12,
  outcome: "throttled",
  mayBeBilled: false,
} as const;
const candidates = [{ target: "east/m", model: "alpha-sonnet-4", why: "priority 1" }];

test("records of earlier versions are read", () => {
  const call = openedCall("req_1", { reservedTokens: 90 });
  expect(readJsonRecord(JSON.stringify({ open: call }))).toStrictEqual({ kind: "open", call });
  const delivered = { outputTokens: 5, at: 17 };
  const checkpoint = JSON.stringify({ checkpoint: { id: "req_1", ...delivered } });
  expect(readJsonRecord(checkpoint)).toEqual({ kind: "checkpoint", id: "req_1", delivered });
  const record = closedCall("req_1");
  const read = readJsonRecord(JSON.stringify({ close: record }));
  expect(read).toStrictEqual({ kind: "close", record });
});

test("fields that only later versions of it had are read", () => {
  const routing = { candidates, attempts: [attempt] };
  const values = { routing, mayBeBilledTwice: true, cacheWriteTokens: 40 };
  const record = closedCall("req_1", values);
  expect(readJsonRecord(JSON.stringify({ close: record }))).toEqual({ kind: "close", record });
});

test("an unreadable routing is dropped, the rest of the record is kept", () => {
  const record = closedCall("req_1");
  const text = JSON.stringify({ close: { ...record, routing: { attempts: 7 } } });
  expect(readJsonRecord(text)).toEqual({ kind: "close", record });
});

test("other texts are no records", () => {
  const { id, ...nameless } = closedCall("req_1");
  const texts = ["", "{", "7", "{}", JSON.stringify({ close: nameless }), `{"open":"${id}"}`];
  expect(texts.map((text) => readJsonRecord(text))).toEqual(texts.map(() => undefined));
});
