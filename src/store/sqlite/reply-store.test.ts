import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replyStoreContract } from "../../../test/contracts/reply-store-contract.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { SqlControlStore } from "../repositories/control-store.ts";
import { migrations } from "./connection/migrations.ts";
import { callReplyShares } from "./migrations/call-replies.ts";
import { SqlReplyStore } from "../repositories/reply-store.ts";

replyStoreContract("SQLite", () => {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const control = new SqlControlStore(connection);
  return {
    store: new SqlReplyStore(connection),
    erase: (accountId) => control.change(({ accounts }) => accounts.markErased(accountId, 1)),
  };
});

test("replies from before shares were counted are evicted like all others", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-replies-"));
  try {
    const path = join(folder, "sluice.db");
    const version = migrations.findIndex(({ sql }) => sql === callReplyShares);
    using earlier = new Database(path, { create: true });
    earlier.run("PRAGMA journal_mode = WAL");
    for (const step of migrations.slice(0, version)) earlier.run(step.sql);
    earlier.run(`PRAGMA user_version = ${version}`);
    const insert = earlier.query("INSERT INTO call_replies VALUES (?, ?, 'digest', ?, 600, NULL)");
    insert.run("small", "acc_small", 1);
    for (const count of [2, 3, 4]) insert.run(`large-${count}`, "acc_large", count);
    await using connection = new SqliteConnection({ path, busyTimeoutMs: 10 });
    const store = new SqlReplyStore(connection);
    const reply = { requestDigest: "digest", body: undefined, keptAt: 5 };
    expect(await store.put({ ...reply, id: "new", accountId: "acc_small" }, 2_400)).toBe(1);
    expect(await store.find("large-2")).toBeUndefined();
    expect(await store.find("small")).toBeDefined();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
