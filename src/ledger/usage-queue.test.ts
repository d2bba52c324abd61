import { expect, test } from "bun:test";
import type { UsageRecord } from "../domain/usage.ts";
import { recordOf } from "../storage/contract/usage-store-contract.ts";
import { openDatabase } from "../storage/sqlite/open-database.ts";
import { SqliteUsageStore } from "../storage/sqlite/usage-store.ts";
import type { UsageStore } from "../storage/store.ts";
import { UsageQueue } from "./usage-queue.ts";

/** A real store that can be told to refuse. */
class MoodyStore extends SqliteUsageStore implements UsageStore {
  isRefusing = false;
  readonly batchSizes: number[] = [];

  override insert(records: readonly UsageRecord[]): Promise<void> {
    this.batchSizes.push(records.length);
    return this.isRefusing ? Promise.reject(new Error("disk full")) : super.insert(records);
  }
}

function setUp(options: { batchRows?: number; queueRows?: number } = {}) {
  const store = new MoodyStore(openDatabase(":memory:"));
  const failures: number[] = [];
  const queue = new UsageQueue({
    store,
    batchRows: options.batchRows ?? 500,
    queueRows: options.queueRows ?? 1_000,
    flushIntervalMs: 1,
    onWriteFailed: (rows) => failures.push(rows),
  });
  return { store, queue, failures };
}

test("rows reach the store by themselves, in batches of at most the configured size", async () => {
  const { store, queue } = setUp({ batchRows: 10 });
  for (let index = 0; index < 25; index += 1) queue.record(recordOf(`req_${index}`));
  while (queue.size > 0) await Bun.sleep(1);
  expect(await store.listRecent(100)).toHaveLength(25);
  expect(Math.max(...store.batchSizes)).toBe(10);
});

test("rows that the store refuses are kept, reported and stored once it recovers", async () => {
  const { store, queue, failures } = setUp();
  store.isRefusing = true;
  for (let index = 0; index < 3; index += 1) queue.record(recordOf(`req_${index}`));
  while (failures.length < 2) await Bun.sleep(1);
  expect(queue.size).toBe(3);
  expect(failures[0]).toBe(3);
  store.isRefusing = false;
  while (queue.size > 0) await Bun.sleep(1);
  expect(await store.listRecent(100)).toHaveLength(3);
});

test("rows that come while a batch is being written are not lost", async () => {
  const { store, queue } = setUp({ batchRows: 2 });
  queue.record(recordOf("req_1"));
  const flushing = queue.flush();
  queue.record(recordOf("req_2"));
  queue.record(recordOf("req_3"));
  await flushing;
  await queue.flush();
  expect(await store.listRecent(100)).toHaveLength(3);
  await queue.close();
});

test("a queue at its limit says so, and no longer when it was emptied", async () => {
  const { store, queue } = setUp({ queueRows: 2 });
  store.isRefusing = true;
  queue.record(recordOf("req_1"));
  expect(queue.isFull).toBe(false);
  queue.record(recordOf("req_2"));
  expect(queue.isFull).toBe(true);
  store.isRefusing = false;
  await queue.flush();
  expect(queue.isFull).toBe(false);
});

test("flush rejects while the store refuses, and closing gives up without throwing", async () => {
  const { store, queue } = setUp();
  store.isRefusing = true;
  queue.record(recordOf("req_1"));
  expect(queue.flush()).rejects.toThrow("refuses");
  await queue.close();
  expect(queue.size).toBe(1);
});
