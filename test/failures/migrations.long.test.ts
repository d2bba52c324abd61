import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { generateApiKey } from "../../src/domain/keys/api-key.ts";
import { createKeyDigest } from "../../src/domain/keys/peppers.ts";
import { migrations, versionWithSeals } from "../../src/store/sqlite/connection/migrations.ts";
import { startServing } from "../support/sluice-process.ts";
import { eventually } from "./outage-gateway.ts";
import { askAdmin, callWith, makeProcessFolder, statusOf } from "./outage-process.ts";

const digest = createKeyDigest("a pepper for tests that is long enough");
const staging = "staging.example.com";
const rows = 600;

interface OldKey {
  readonly id: string;
  readonly environment: string;
  readonly text: string;
  readonly rotated: string | undefined;
  readonly revokedAt: number | null;
}

function oldKey(id: string, environment: string, more: Partial<OldKey> = {}): OldKey {
  const text = newText();
  return { id, environment, text, rotated: undefined, revokedAt: null, ...more };
}

function newText(): string {
  return generateApiKey((target) => crypto.getRandomValues(target)).text;
}

const keys = {
  search: oldKey("key_search", "production", { rotated: newText() }),
  staged: oldKey("key_staged", "staging"),
  revoked: oldKey("key_revoked", "production", { revokedAt: Date.now() - 3_600_000 }),
};

/** A database of the Sluice version with this number of migrations. */
function writeDatabase(path: string, version: number): void {
  using database = new Database(path, { create: true });
  database.run("PRAGMA journal_mode = WAL");
  const [first = "", ...later] = migrations.slice(0, version).map(({ sql }) => sql);
  database.run(first);
  database.transaction(() => fill(database))();
  for (const step of later) database.run(step);
  database.run(`PRAGMA user_version = ${version}`);
}

function fill(database: Database): void {
  const insertKey = database.query(
    "INSERT INTO keys VALUES (?, 'search', ?, 'standard', NULL, NULL, 1000, ?)",
  );
  const insertSecret = database.query("INSERT INTO secrets VALUES (?, ?, ?, 1000, ?)");
  for (const { id, environment, text, rotated, revokedAt } of Object.values(keys)) {
    insertKey.run(id, environment, revokedAt);
    insertSecret.run(text.slice(7, 15), id, digest(text), null);
    if (rotated === undefined) continue;
    insertSecret.run(rotated.slice(7, 15), id, digest(rotated), Date.now() + 3_600_000);
  }
  const insertCall = database.query(
    `INSERT INTO usage VALUES (?, ?, ?, 'search', ?, 'embed-text-v2', 'simulator/a', 'on-demand',
       10, 3, 0, 'upstream', ?, ?, NULL, 0, 1, 5.5, 20.5)`,
  );
  const now = Date.now();
  for (let place = 0; place < rows; place += 1) {
    const { id, environment } = place % 3 === 0 ? keys.staged : keys.search;
    const isGood = place % 10 !== 0;
    const at = now - (place + 1) * 60_000;
    const outcome = isGood ? "completed" : "failed";
    insertCall.run(`req_${place}`, at, environment, id, outcome, isGood ? 200 : 503);
  }
}

interface Totals {
  readonly data: readonly {
    readonly group: { readonly key: string };
    readonly calls: number;
    readonly failed_calls: number;
    readonly input_tokens: number;
    readonly output_tokens: number;
  }[];
}

/** Since the version with seals, only a gateway creates a database with a complete audit. */
const earlier = Array.from({ length: versionWithSeals - 1 }, (_, place) => place + 1);

describe.each(earlier)("`serve` on a filled database of schema %i", (version) => {
  test("accepts the old keys, lists them, and keeps every sum", async () => {
    await using folder = makeProcessFolder();
    writeDatabase(folder.databasePath, version);
    await using serving = await startServing(["--config", folder.configPath]);
    expect(await statusOf(`${serving.dataUrl}/readyz`)).toBe(200);

    const { body: totals } = await askAdmin(serving, folder, "/usage/totals?since=7d&by=key");
    const sums = (totals as Totals).data.map(
      (sum) =>
        `${sum.group.key} ${sum.calls} ${sum.failed_calls} ${sum.input_tokens} ${sum.output_tokens}`,
    );
    expect(sums.toSorted()).toEqual(["key_search 400 40 4000 1200", "key_staged 200 20 2000 600"]);

    expect(await callWith(serving, keys.search.text)).toBe(200);
    expect(await callWith(serving, keys.search.rotated ?? "")).toBe(200);
    expect(await callWith(serving, keys.staged.text, staging)).toBe(200);
    expect(await callWith(serving, keys.staged.text)).toBe(401);
    expect(await callWith(serving, keys.revoked.text)).toBe(401);

    const { body: listed } = await askAdmin(serving, folder, "/keys");
    const found = (listed as { data: { id: string; status: string; secrets: unknown[] }[] }).data;
    const lines = found.map(({ id, status, secrets }) => `${id} ${status} ${secrets.length}`);
    expect(lines.toSorted()).toEqual([
      "key_revoked revoked 1",
      "key_search active 2",
      "key_staged active 1",
    ]);
    const { body: accounts } = await askAdmin(serving, folder, "/accounts");
    expect((accounts as { data: { name: string }[] }).data.map(({ name }) => name)).toEqual([
      "default",
    ]);

    const calls = "/usage/totals?since=7d";
    await eventually("the new calls are in the sums", async () => {
      const { body } = await askAdmin(serving, folder, calls);
      return (body as Totals).data[0]?.calls === rows + 3;
    });
    const { body: verdict } = await askAdmin(serving, folder, "/audit/verify");
    expect(verdict).toMatchObject({ is_intact: true });
    expect(serving.text()).not.toContain(" ERROR ");
  }, 30_000);
});
