import { expect, test } from "bun:test";
import { AdminRefusal } from "../client/admin-client.ts";
import { findCall } from "./explain.ts";

const id = "req_019a4c2f7b3e5d6a8c9e0f1a2b3c4d5e";

function find(status: number, mayMiss: boolean) {
  const reported: string[] = [];
  const message = "The database is unavailable.";
  const request = () => Promise.reject(new AdminRefusal({ status, code: null, message }));
  const io = { report: (line: string) => void reported.push(line) };
  return { found: findCall(id, { client: { request }, io, mayMiss }), reported };
}

test("a refusal is explained while the ledger cannot be read", async () => {
  const { found, reported } = find(503, true);
  expect(await found).toBeUndefined();
  expect(reported).toEqual([
    "The ledger cannot be read now; if targets were tried, they are not shown.",
  ]);
});

test("what is in the ledger alone cannot be explained without it", async () => {
  const { found, reported } = find(503, false);
  expect(await found.catch((error: unknown) => error)).toMatchObject({ status: 503 });
  expect(reported).toEqual([]);
});

test("a call that the ledger does not have is no failure", async () => {
  const { found, reported } = find(404, true);
  expect(await found).toBeUndefined();
  expect(reported).toEqual([]);
});
