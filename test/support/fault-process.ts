import { metricsOf } from "./metrics-of.ts";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/domain/clock.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { openStores as openPostgres } from "../../src/store/postgres/open-stores.ts";
import type { SqlStores } from "../../src/store/repositories/open-stores.ts";
import { openStores as openSqlite } from "../../src/store/sqlite/open-stores.ts";
import { createKeysOfAccounts } from "./process-key.ts";
import { startServing, type ServingProcess } from "./sluice-process.ts";
import { testPeppers } from "./test-peppers.ts";

/** A gateway in a process of its own, to measure its memory, and a key to call it. */
export interface FaultProcess extends AsyncDisposable {
  readonly serving: ServingProcess;
  readonly configPath: string;
  /** Its database, read by itself. */
  openStores(): SqlStores & { readonly connection: AsyncDisposable };
  /** A request of the control plane as the operator on this machine. */
  admin(method: string, path: string, body?: unknown): Promise<Response>;
  readonly port: number;
  /** The first of the keys. */
  readonly key: string;
  readonly keys: readonly string[];
  /** `path` is below `/v1`; default: chat completions. */
  post(body: unknown, path?: string): Promise<Response>;
  /** Of the serving process, from its metrics. */
  residentBytes(): Promise<number>;
  metrics(): Promise<string>;
  /** Ends the process gracefully and reads the whole ledger. */
  stopAndReadRows(): Promise<readonly UsageRecord[]>;
  /** Starts a gateway with the same configuration, after this one has stopped. */
  restart(): Promise<ServingProcess>;
}

/**
 * `sections` are top-level keys of the configuration; `upstreams` and `models` must be there. Each
 * name of an account adds a key of it. `postgres`: URL of a database; default: SQLite.
 */
export async function startFaultProcess(
  sections: Readonly<Record<string, string>>,
  accounts: readonly string[] = ["process"],
  postgres?: string,
): Promise<FaultProcess> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-faults-"));
  const database = join(folder, "sluice.db");
  const configPath = join(folder, "sluice.yaml");
  const dataDir = join(folder, "data");
  mkdirSync(dataDir);
  const all = {
    listen: `{ data: "127.0.0.1:0", admin: "127.0.0.1:0" }`,
    storage: `{ url: "${postgres ?? `sqlite:${database}`}" }`,
    data_dir: dataDir,
    shutdown: "{ pre_stop: 0s }",
    overload: "{ loop_delay: 10s }",
    telemetry: "{ log_level: info, log_format: text }",
    environments: `[{ name: test, hosts: ["*"], models: ["*"] }]`,
    ...sections,
  };
  const lines = Object.entries(all).map(([name, section]) => `${name}: ${section}\n`);
  writeFileSync(configPath, lines.join(""));
  const created = await createKeysOfAccounts(configPath, accounts);
  const keys = created.map(({ text }) => text);
  const [key = ""] = keys;
  const serving = await startServing(["--config", configPath]);
  const metrics = async (): Promise<string> => metricsOf(serving.adminUrl);
  const openStores = () =>
    postgres === undefined
      ? openSqlite(database, systemClock, { peppers: testPeppers() })
      : openPostgres(postgres, systemClock, { peppers: testPeppers() });
  return {
    serving,
    configPath,
    openStores,
    admin: (method, path, body) =>
      fetch(`${serving.adminUrl}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${readLocalAccess(dataDir)?.token}`,
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    port: Number(new URL(serving.dataUrl).port),
    key,
    keys,
    post: (body, path = "chat/completions") =>
      fetch(`${serving.dataUrl}/v1/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    metrics,
    async residentBytes() {
      return Number(/^process_resident_memory_bytes (\d+)$/m.exec(await metrics())?.[1]);
    },
    async stopAndReadRows() {
      serving.signal("SIGTERM");
      await serving.exited;
      const { reports, connection } = openStores();
      await using _ = connection;
      const rows: UsageRecord[] = [];
      let after: string | undefined;
      do {
        const filter = { since: 0, until: Number.MAX_SAFE_INTEGER };
        const page = await reports.calls(filter, { limit: 500, after });
        rows.push(...page.items);
        after = page.next;
      } while (after !== undefined);
      return rows;
    },
    restart: () => startServing(["--config", configPath]),
    async [Symbol.asyncDispose]() {
      await serving[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
