import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { claimsContract } from "../../../test/contracts/claims-contract.ts";
import { replyStoreContract } from "../../../test/contracts/reply-store-contract.ts";
import { responseStoreContract } from "../../../test/contracts/response-store-contract.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { ControlStore } from "../repositories/control-store.ts";
import { SqlReplyStore } from "../repositories/reply-store.ts";
import { SqlResponseStore } from "../repositories/response-store.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

function open() {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const clock = new ManualClock();
  const now = () => sql<number>`${clock.now()}`;
  const store = new SqlReplyStore({ replies: connection, claims: connection, now });
  return { connection, clock, store };
}

replyStoreContract("SQLite", () => {
  const { connection, store } = open();
  const control = new ControlStore(connection, testPeppers());
  return {
    store,
    erase: (accountId) => control.change(({ accounts }) => accounts.markErased(accountId, 1)),
  };
});

const folder = mkdtempSync(join(tmpdir(), "sluice-responses-"));
afterAll(() => rmSync(folder, { recursive: true }));

responseStoreContract("SQLite", () => {
  const path = join(folder, `${crypto.randomUUID()}.db`);
  const [connection, ...others] = [1, 2, 3].map(
    () => new SqliteConnection({ path, busyTimeoutMs: 10 }),
  );
  if (connection === undefined) throw new Error("no connection");
  return {
    store: new SqlResponseStore(connection),
    control: new ControlStore(connection, testPeppers()),
    others: others.map((other) => new SqlResponseStore(other)),
  };
});

claimsContract("SQLite", () => {
  const { clock, store } = open();
  return { store, pass: (durationMs) => Promise.resolve(clock.advance(durationMs)) };
});
