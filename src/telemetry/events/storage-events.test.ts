import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { pageOf } from "../../../test/support/metrics-page.ts";
import { zeroGauges } from "../../../test/support/zero-gauges.ts";
import { createLogger } from "../log/logger.ts";
import { Metrics } from "../metrics/metrics.ts";
import { ledgerEvents } from "./ledger-events.ts";
import { storageEvents } from "./storage-events.ts";

function start() {
  const clock = new ManualClock();
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const logger = createLogger({ level: "debug", format: "json", clock, write });
  const metrics = new Metrics(zeroGauges);
  const events = storageEvents({ logger, clock });
  const ledger = ledgerEvents({ logger, metrics, clock });
  const logged = (): unknown[] => lines.map((line): unknown => JSON.parse(line));
  return { clock, events, ledger, metrics, logged };
}

test("a database outage logs one line at its start and one at its end, not one per poll", () => {
  const { clock, events, logged } = start();
  for (let poll = 0; poll < 20; poll++) {
    events.keys.failed(new Error("database is locked"));
    clock.advance(500);
  }
  events.keys.recovered();
  events.keys.recovered();
  expect(logged()).toEqual([
    expect.objectContaining({ level: "error", cause: expect.stringContaining("is locked") }),
    expect.objectContaining({ level: "info", afterMs: 10_000 }),
  ]);
});

test("the lines on limits, the database and its gateways tell each new reason, and how long it lasted", () => {
  const { clock, events, logged } = start();
  events.shares.end({ store: "valkey" });
  events.shares.failedAnew({ reason: "the connection was closed" });
  clock.advance(500);
  events.shares.failedAnew({ reason: "the connection was refused" });
  clock.advance(500);
  events.shares.end({ store: "valkey" });
  events.databaseFailed("a write", new Error("database is locked"));
  clock.advance(700);
  events.database.recovered();
  events.differences.failedAnew({ what: "peppers" });
  clock.advance(900);
  events.differences.recovered();
  expect(logged()).toEqual([
    expect.not.objectContaining({ afterMs: expect.anything() }),
    expect.objectContaining({ level: "error", reason: "the connection was closed" }),
    expect.objectContaining({ level: "error", reason: "the connection was refused" }),
    expect.objectContaining({ level: "info", store: "valkey", afterMs: 1_000 }),
    expect.objectContaining({ level: "error", what: "a write" }),
    expect.objectContaining({ level: "info", afterMs: 700 }),
    expect.objectContaining({ level: "error", what: "peppers" }),
    expect.objectContaining({ level: "info", afterMs: 900 }),
  ]);
});

test("different outages are logged independently", () => {
  const { events, ledger, logged } = start();
  events.keys.failed(new Error("a"));
  ledger.writeFailed(7, new Error("b"));
  ledger.spoolFailed(new Error("c"));
  expect(logged()).toHaveLength(3);
});

test("every failed batch is counted, also when it is not logged", () => {
  const { ledger, metrics } = start();
  for (let tries = 0; tries < 3; tries++) ledger.writeFailed(1, new Error("full"));
  expect(pageOf(metrics)).toContain("sluice_ledger_write_failures_total 3");
});

test("every dead letter logs a line", () => {
  const { ledger, metrics, logged } = start();
  ledger.deadLettered("req_1", new Error("NOT NULL"));
  ledger.deadLettered("req_2", new Error("NOT NULL"));
  expect(logged()).toHaveLength(2);
  expect(pageOf(metrics)).toContain("sluice_ledger_dead_letters_total 2");
});

test("a start without a replay logs nothing, and skipped bytes are an error", () => {
  const { ledger, logged } = start();
  ledger.replayed({ closed: 0, interrupted: 0, skippedBytes: 0 });
  expect(logged()).toEqual([]);
  ledger.replayed({ closed: 2, interrupted: 1, skippedBytes: 0 });
  ledger.replayed({ closed: 2, interrupted: 0, skippedBytes: 90 });
  expect(logged()).toEqual([
    expect.objectContaining({ level: "warn", interrupted: 1 }),
    expect.objectContaining({ level: "error", skippedBytes: 90 }),
  ]);
});

test("a spool that is nearly full again within a minute is logged again", () => {
  const { clock, ledger, logged } = start();
  ledger.nearlyFull(81, 100);
  clock.advance(5_000);
  ledger.hasRoomAgain();
  ledger.nearlyFull(82, 100);
  expect(logged()).toEqual([
    expect.objectContaining({ level: "warn", bytes: 81 }),
    expect.objectContaining({ level: "info", afterMs: 5_000 }),
    expect.objectContaining({ level: "warn", bytes: 82 }),
  ]);
});

test("only a successful retention run ends a retention outage", () => {
  const { clock, events, logged } = start();
  const failed = expect.objectContaining({ level: "error" });
  events.retention.failed(new Error("locked"));
  events.retentionRemoved(25);
  clock.advance(1_000);
  events.retention.failed(new Error("locked"));
  events.retention.recovered();
  events.retention.recovered();
  events.retention.failed(new Error("locked"));
  const removed = expect.objectContaining({ level: "info", rows: 25 });
  const recovered = expect.objectContaining({ level: "info", afterMs: 1_000 });
  expect(logged()).toEqual([failed, removed, recovered, failed]);
});

test("usage that arrived too late is logged with the reasons", () => {
  const { events, logged } = start();
  events.usageDropped({ ofErasedAccounts: 0, tooOld: 0 });
  events.usageDropped({ ofErasedAccounts: 2, tooOld: 7 });
  const said = expect.objectContaining({ level: "warn", ofErasedAccounts: 2, tooOld: 7 });
  expect(logged()).toEqual([said]);
});
