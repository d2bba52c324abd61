import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { simulatorUpstream } from "../support/gateway.ts";
import type { ServingProcess } from "../support/sluice-process.ts";

/** A configuration with a simulated upstream, in a new folder. */
export interface ProcessFolder extends AsyncDisposable {
  readonly configPath: string;
  readonly databasePath: string;
  readonly dataDir: string;
}

export interface ProcessFolderOptions {
  /** The configured pepper; `null`: the file in the data directory. */
  readonly pepper?: string | null;
  /** Default: 1. */
  readonly processes?: number;
  /** Default: SQLite at `databasePath`. */
  readonly storageUrl?: string;
  /** Further settings, as YAML. */
  readonly settings?: string;
}

export function makeProcessFolder(options: ProcessFolderOptions = {}): ProcessFolder {
  const {
    pepper = "a pepper for tests that is long enough",
    processes = 1,
    settings = "",
  } = options;
  const folder = mkdtempSync(join(tmpdir(), "sluice-process-"));
  const databasePath = join(folder, "database", "sluice.db");
  mkdirSync(dirname(databasePath));
  const { storageUrl = `sqlite:${databasePath}` } = options;
  const dataDir = join(folder, "data");
  const configPath = join(folder, "sluice.yaml");
  const simulator = startSimulator();
  writeFileSync(
    configPath,
    `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "${storageUrl}" }
data_dir: ${dataDir}
processes: ${processes}
${settings}
${pepper === null ? "" : `auth: { peppers: ["${pepper}"] }`}
environments:
  - { name: production, hosts: ["*"], models: ["*"] }
  - { name: staging, hosts: [staging.example.com], models: ["*"] }
upstreams:
  simulator: ${simulatorUpstream(simulator, "openai")}
models:
  embed-text-v2:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: simulator, model: simulated-embedding }]
  chat-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: simulated-chat }]
`,
  );
  return {
    configPath,
    databasePath,
    dataDir,
    async [Symbol.asyncDispose]() {
      await simulator[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The status of a call with a key; `host` names the environment. */
export async function callWith(
  { dataUrl }: ServingProcess,
  key: string,
  host = "127.0.0.1",
): Promise<number> {
  const response = await fetch(`${dataUrl}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", host },
    body: JSON.stringify({ model: "embed-text-v2", input: "hi" }),
  });
  await response.text();
  return response.status;
}

/** The status of a public page. */
export async function statusOf(url: string): Promise<number> {
  const response = await fetch(url);
  await response.text();
  return response.status;
}

/** An answer of the control plane to the local operator. */
export async function askAdmin(
  { adminUrl }: ServingProcess,
  { dataDir }: ProcessFolder,
  path: string,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const local = readLocalAccess(dataDir);
  const headers = { authorization: `Bearer ${local?.token}` };
  const response = await fetch(`${adminUrl}/admin/v1${path}`, { headers });
  return { status: response.status, body: await response.json() };
}
