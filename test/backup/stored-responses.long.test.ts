import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type JsonObject, objectOf } from "../../src/domain/json-fields.ts";
import { startServing } from "../support/sluice-process.ts";
import { BackupFolders } from "./backup-folders.ts";

const longMs = 60_000;

async function ask(url: string, key: string, fields: object): Promise<JsonObject> {
  const response = await fetch(`${url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-model", ...fields }),
  });
  return objectOf(await response.json()) ?? {};
}

function storedIn(path: string): number {
  using database = new Database(path, { readonly: true });
  return database.query("SELECT id FROM stored_responses").all().length;
}

test(
  "stored responses survive a killed process, whole or not at all, and are in no backup",
  async () => {
    await using folders = await BackupFolders.create();
    const { source, key } = folders;
    const before = await startServing(["--config", source.configPath]);
    const answers: JsonObject[] = [];
    const asking = Array.from({ length: 20 }, async (_, count) => {
      const answer = await ask(before.dataUrl, key, { input: `count: ${count}` });
      answers.push(answer);
    });
    await Promise.race(asking);
    before.signal("SIGKILL");
    await before.exited;
    await Promise.allSettled(asking);
    expect(answers.length).toBeGreaterThan(0);

    await using after = await startServing(["--config", source.configPath]);
    for (const { id, store } of answers) {
      expect(store).toBeTrue();
      const next = await ask(after.dataUrl, key, { input: "hi", previous_response_id: id });
      expect(next["status"]).toBe("completed");
    }
    const made = await folders.makeBackup();
    expect([made.errors, made.exitCode]).toEqual(["", 0]);
    expect(storedIn(source.databasePath)).toBeGreaterThanOrEqual(2 * answers.length);
    const backup = join(folders.backup, "sluice.db");
    expect(storedIn(backup)).toBe(0);
    using database = new Database(source.databasePath, { readonly: true });
    const bodies = database
      .query<{ body: Uint8Array }, []>("SELECT body FROM stored_responses")
      .all();
    const bytes = readFileSync(backup);
    for (const { body } of bodies) expect(bytes.includes(body.subarray(0, 64))).toBeFalse();
  },
  longMs,
);
