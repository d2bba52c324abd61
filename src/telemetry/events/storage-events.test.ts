import { expect, test } from "bun:test";
import { recordedTelemetry } from "../../../test/support/recorded-telemetry.ts";

test("a database outage logs one line at its start and one at its end, not one per poll", () => {
  const { clock, storage, logged } = recordedTelemetry();
  for (let poll = 0; poll < 20; poll++) {
    storage.keys.failed(new Error("database is locked"));
    clock.advance(500);
  }
  storage.keys.recovered();
  storage.keys.recovered();
  expect(logged()).toEqual([
    expect.objectContaining({ level: "error", cause: expect.stringContaining("is locked") }),
    expect.objectContaining({ level: "info", afterMs: 10_000 }),
  ]);
});

test("the lines on limits, the database and its gateways tell each new reason, and how long it lasted", () => {
  const { clock, storage, logged } = recordedTelemetry();
  storage.shares.end({ store: "valkey" });
  storage.shares.failedAnew({ reason: "the connection was closed" });
  clock.advance(500);
  storage.shares.failedAnew({ reason: "the connection was refused" });
  clock.advance(500);
  storage.shares.end({ store: "valkey" });
  storage.databaseFailed("a write", new Error("database is locked"));
  clock.advance(700);
  storage.database.recovered();
  storage.differences.failedAnew({ what: "peppers" });
  clock.advance(900);
  storage.differences.recovered();
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
  const { storage, ledger, logged } = recordedTelemetry();
  storage.keys.failed(new Error("a"));
  ledger.writeFailed(new Error("b"));
  ledger.spoolFailed(new Error("c"));
  expect(logged()).toHaveLength(3);
});

test("every failed batch is counted, also when it is not logged", () => {
  const { ledger, page } = recordedTelemetry();
  for (let tries = 0; tries < 3; tries++) ledger.writeFailed(new Error("full"));
  expect(page()).toContain("sluice_ledger_write_failures_total 3");
});

test("every dead letter logs a line", () => {
  const { ledger, page, logged } = recordedTelemetry();
  ledger.deadLettered("req_1", new Error("NOT NULL"));
  ledger.deadLettered("req_2", new Error("NOT NULL"));
  expect(logged()).toHaveLength(2);
  expect(page()).toContain("sluice_ledger_dead_letters_total 2");
});

test("a start without a replay logs nothing, and skipped bytes are an error", () => {
  const { ledger, logged } = recordedTelemetry();
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
  const { clock, ledger, logged } = recordedTelemetry();
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
  const { clock, storage, logged } = recordedTelemetry();
  const failed = expect.objectContaining({ level: "error" });
  storage.retention.failed(new Error("locked"));
  storage.retentionRemoved(25);
  clock.advance(1_000);
  storage.retention.failed(new Error("locked"));
  storage.retention.recovered();
  storage.retention.recovered();
  storage.retention.failed(new Error("locked"));
  const removed = expect.objectContaining({ level: "info", rows: 25 });
  const recovered = expect.objectContaining({ level: "info", afterMs: 1_000 });
  expect(logged()).toEqual([failed, removed, recovered, failed]);
});

test("usage that arrived too late is logged with the reasons", () => {
  const { storage, logged } = recordedTelemetry();
  storage.usageDropped({ ofErasedAccounts: 0, tooOld: 0 });
  storage.usageDropped({ ofErasedAccounts: 2, tooOld: 7 });
  const said = expect.objectContaining({ level: "warn", ofErasedAccounts: 2, tooOld: 7 });
  expect(logged()).toEqual([said]);
});
