import { Database } from "bun:sqlite";
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { generateApiKey } from "../../src/domain/keys/api-key.ts";
import type { AppOverrides } from "../support/app.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** A gateway whose database file is outside the data directory. */
export interface OutageGateway extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly path: string;
  /** The number of answered calls. */
  readonly answered: number;
  /** A call with the known key. */
  readonly call: () => Promise<number>;
  /** A request with a well-formed key that nobody has. */
  readonly unknownKey: () => Promise<number>;
  /** Status and code of the control plane. */
  readonly admin: (method: string, path: string, body?: unknown) => Promise<string>;
  readonly isReady: () => Promise<boolean>;
  /** How often the log contains a message of at least `info`. */
  readonly logged: (message: string) => number;
}

export async function startOutageGateway(overrides: AppOverrides = {}): Promise<OutageGateway> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-outage-"));
  const path = join(folder, "database", "sluice.db");
  mkdirSync(dirname(path));
  const storage = `{ url: "sqlite:${path}" }`;
  const gateway = await startGateway({ sections: { storage }, overrides });
  let answered = 0;
  return {
    gateway,
    path,
    get answered() {
      return answered;
    },
    async call() {
      const body = { model: "embedding-model", input: "hi" };
      const response = await gateway.post("/v1/embeddings", body);
      await response.text();
      if (response.ok) answered += 1;
      return response.status;
    },
    async unknownKey() {
      const { text } = generateApiKey((target) => crypto.getRandomValues(target));
      const headers = { authorization: `Bearer ${text}` };
      const response = await gateway.get("/v1/models", { headers });
      await response.text();
      return response.status;
    },
    async admin(method, adminPath, body) {
      const response = await gateway.admin(method, `/admin/v1${adminPath}`, body);
      const { error } = (await response.json()) as { error?: { code: string } };
      return error === undefined ? String(response.status) : `${response.status} ${error.code}`;
    },
    async isReady() {
      const response = await fetch(`${gateway.url}/readyz`);
      await response.text();
      return response.ok;
    },
    logged: (message) =>
      gateway.log.filter(
        (line) => line.includes(`"message":"${message}`) && !line.includes(`"level":"debug"`),
      ).length,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Waits until a condition holds; throws after a generous timeout. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>) {
  const deadline = performance.now() + 30_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not in 30 s: ${what}`);
    await Bun.sleep(20);
  }
}

/** Replaces a database by nonsense; returns a function that restores it. */
export function spoilDatabase(path: string): () => void {
  using database = new Database(path);
  // Else SQLite would read everything from the write-ahead log.
  database.run("PRAGMA busy_timeout = 5000");
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  copyFileSync(path, `${path}.kept`);
  writeFileSync(path, Buffer.alloc(300_000, "this is no database "));
  return () => renameSync(`${path}.kept`, path);
}

/** Moves the folder of a database aside; returns a function that restores it. */
export function removeFolder(path: string): () => void {
  const folder = dirname(path);
  renameSync(folder, `${folder}.away`);
  return () => renameSync(`${folder}.away`, folder);
}
