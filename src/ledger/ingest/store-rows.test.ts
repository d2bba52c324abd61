import { expect, test } from "bun:test";
import { closedCall, FallibleStore } from "../../../test/support/ledger-fixtures.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { RefusedRows, StorageUnavailable } from "../../store/errors.ts";
import { storeRows } from "./store-rows.ts";

const rows = Array.from({ length: 37 }, (_, index) => closedCall(`req_${index}`));

function refusing(ids: readonly string[], error: Error): FallibleStore {
  const store = new FallibleStore();
  const isPoison = ({ id }: UsageRecord): boolean => ids.includes(id);
  store.refuse = (records) => (records.some(isPoison) ? error : undefined);
  return store;
}

function outcome(promise: Promise<readonly { readonly record: UsageRecord }[]>) {
  return promise.then(
    (poison) => poison.map(({ record }) => record.id),
    (error: unknown) => error,
  );
}

test("rows that the store refuses are found, and all others are stored", async () => {
  const poison = ["req_0", "req_17", "req_18", "req_36"];
  const store = refusing(poison, new RefusedRows("check failed"));
  expect(await outcome(storeRows(rows, store))).toEqual(poison);
  expect(store.rows.size).toBe(rows.length - poison.length);
});

test("all rows are poison when the store refuses each", async () => {
  const store = new FallibleStore();
  store.refuse = () => new RefusedRows("check failed");
  expect(await outcome(storeRows(rows.slice(0, 3), store))).toHaveLength(3);
});

test("an unavailable store is not searched for poison rows", async () => {
  const error = new StorageUnavailable("locked");
  const store = refusing(["req_5"], error);
  expect(await outcome(storeRows(rows, store))).toBe(error);
  expect(store.batchSizes).toEqual([rows.length]);
});

test("a row that fails for an unknown reason is found", async () => {
  const store = refusing(["req_5"], new TypeError("odd"));
  expect(await outcome(storeRows(rows, store))).toEqual(["req_5"]);
  expect(store.rows.size).toBe(rows.length - 1);
});

test("an unknown failure of every row is not a row's fault", async () => {
  const error = new TypeError("odd");
  const store = new FallibleStore();
  store.refuse = () => error;
  expect(await outcome(storeRows(rows.slice(0, 4), store))).toBe(error);
  expect(await outcome(storeRows(rows.slice(0, 1), store))).toBe(error);
});
