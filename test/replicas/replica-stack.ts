import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, untilReachable } from "../../bench/stand/reachable.ts";
import { startChild, type Child } from "../../bench/stand/child.ts";
import { startSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import {
  postgresPrograms,
  startPostgres,
  type PostgresServer,
} from "../support/postgres-server.ts";
import { testWhere } from "../support/requirement.ts";
import {
  runSluice,
  sluiceProgram,
  startServing,
  type ServingProcess,
} from "../support/sluice-process.ts";
import { startValkey, valkeyProgram, type ValkeyServer } from "../support/valkey-server.ts";

export interface StackOptions {
  /** Default: 3. */
  readonly replicas?: number;
  /** Workers of each. Default: 2. */
  readonly workers?: number;
  /** How long decisions wait for Valkey. Default: 5s, as the machine may be busy. */
  readonly timeout?: string;
  /** Further settings of the configuration, as YAML. */
  readonly settings?: string;
  /** Pools, models and upstreams, instead of one chat model. */
  readonly models?: (simulator: Simulator) => string;
  /** A further address of this machine on which the servers listen. Default: none. */
  readonly address?: string;
}

/** Where a gateway runs that joins those behind the proxy. */
export interface ReplicaPlace {
  /** Its own address. */
  readonly address: string;
  /** What a command begins with that runs there. */
  readonly prefix: readonly string[];
  /** The address of PostgreSQL and Valkey, seen from there. */
  readonly serversAt: string;
  /** Where the model provider answers, such as `http://127.0.0.1:9090/v1`. */
  readonly upstreamUrl: string;
}

/** One gateway of several. */
export interface Replica {
  readonly configPath: string;
  readonly dataDir: string;
  readonly process: ServingProcess;
}

/** Whether PostgreSQL, Valkey or Redis, and nginx are installed. */
export const canRunReplicas =
  postgresPrograms !== undefined && valkeyProgram !== null && Bun.which("nginx") !== null;

/** Runs tests only where PostgreSQL, Valkey or Redis, and nginx are installed. */
export const testWithReplicas = testWhere(
  canRunReplicas,
  "PostgreSQL, Valkey or Redis, and nginx are not all installed",
);

/**
 * Several gateways with one PostgreSQL and one Valkey server, behind nginx, which sends each call
 * to the next gateway. All are processes of their own; the model provider is simulated.
 */
export class ReplicaStack implements AsyncDisposable {
  readonly simulator: Simulator;
  readonly postgres: PostgresServer;
  readonly valkey: ValkeyServer;
  readonly #folder: string;
  readonly #options: StackOptions;
  readonly #replicas: Replica[] = [];
  #storageUrl = "";
  #proxy: Child | undefined;
  /** Where callers send their calls. */
  url = "";

  private constructor(
    options: StackOptions,
    servers: Pick<ReplicaStack, "simulator" | "postgres" | "valkey">,
  ) {
    this.#options = options;
    this.#folder = mkdtempSync(join(tmpdir(), "sluice-replicas-"));
    this.simulator = servers.simulator;
    this.postgres = servers.postgres;
    this.valkey = servers.valkey;
  }

  static async create(options: StackOptions = {}): Promise<ReplicaStack> {
    const simulator = startSimulator();
    const { address } = options;
    const open = ["--bind", "127.0.0.1", address ?? "", "--protected-mode", "no"];
    const [postgres, valkey] = await Promise.all([
      startPostgres({ address }),
      startValkey(address === undefined ? [] : open),
    ]);
    const stack = new ReplicaStack(options, { simulator, postgres, valkey });
    try {
      stack.#storageUrl = await postgres.createDatabase();
      const { replicas = 3 } = options;
      for (let number = 1; number <= replicas; number += 1) await stack.#startReplica(number);
      await stack.#startProxy();
      return stack;
    } catch (error) {
      await stack[Symbol.asyncDispose]();
      throw error;
    }
  }

  get replicas(): readonly Replica[] {
    return this.#replicas;
  }

  get storageUrl(): string {
    return this.#storageUrl;
  }

  /** Starts one more gateway, which the proxy does not know. */
  join(place: ReplicaPlace): Promise<Replica> {
    return this.#startReplica(this.#replicas.length + 1, place);
  }

  /** The output of a command, as an operator of the first gateway runs it. */
  async sluice(...command: readonly string[]): Promise<string> {
    const [first] = this.#replicas;
    if (first === undefined) throw new Error("there is no gateway");
    const finished = await runSluice([...command, "--config", first.configPath]);
    if (finished.exitCode !== 0) throw new Error(`${command.join(" ")}: ${finished.errors}`);
    return finished.output;
  }

  /** A key with limits of its own, once every gateway accepts it. */
  async createKey(account: string, limits: readonly string[]): Promise<string> {
    await this.sluice("accounts", "create", account);
    const place = ["--account", account, "--environment", "production"];
    await this.sluice("applications", "create", "search", ...place);
    const issued = ["keys", "create", "--application", "search", ...place, ...limits];
    const key = (await this.sluice(...issued)).trim();
    for (const { process } of this.#replicas) {
      while ((await statusOf(process.dataUrl, key)) === 401) await Bun.sleep(50);
    }
    return key;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#proxy?.[Symbol.asyncDispose]();
    await Promise.all(this.#replicas.map(({ process }) => process[Symbol.asyncDispose]()));
    await this.postgres[Symbol.asyncDispose]();
    await this.valkey[Symbol.asyncDispose]();
    await this.simulator[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #startReplica(number: number, place: ReplicaPlace = this.#here): Promise<Replica> {
    const dataDir = join(this.#folder, `data-${number}`);
    const configPath = join(this.#folder, `sluice-${number}.yaml`);
    writeFileSync(configPath, this.#configText(dataDir, place));
    const program = [...place.prefix, ...sluiceProgram];
    const process = await startServing(["--config", configPath], {}, program);
    const replica = { configPath, dataDir, process };
    this.#replicas.push(replica);
    return replica;
  }

  get #here(): ReplicaPlace {
    const address = "127.0.0.1";
    return { address, prefix: [], serversAt: address, upstreamUrl: this.simulator.url };
  }

  #configText(dataDir: string, { address, serversAt, upstreamUrl }: ReplicaPlace): string {
    const { workers = 2, settings = "", models, timeout = "5s" } = this.#options;
    const seen = (url: string): string => url.replace("127.0.0.1", serversAt);
    return `
listen: { data: "${address}:0", admin: "127.0.0.1:0" }
storage: { url: "${seen(this.#storageUrl)}" }
limits: { store: "${seen(this.valkey.url)}", timeout: ${timeout} }
data_dir: ${dataDir}
workers: ${workers}
auth: { pepper: "a pepper for tests that is long enough" }
# The machine of the tests may be busy.
overload: { loop_delay: 10s }
${settings}
environments:
  - { name: production, hosts: ["*"], models: ["*"] }
${models === undefined ? oneModel(upstreamUrl) : models(this.simulator)}
`;
  }

  async #startProxy(): Promise<void> {
    const prefix = join(this.#folder, "nginx");
    mkdirSync(prefix);
    const port = freePort();
    const configPath = join(prefix, "nginx.conf");
    const servers = this.#replicas.map(({ process }) => new URL(process.dataUrl).host);
    writeFileSync(configPath, proxyConfig(port, servers));
    const logPath = join(prefix, "output.log");
    const command = [
      "nginx",
      "-p",
      `${prefix}/`,
      "-e",
      join(prefix, "error.log"),
      "-c",
      configPath,
    ];
    this.#proxy = startChild({ command, logPath });
    await untilReachable(port, this.#proxy);
    this.url = `http://127.0.0.1:${port}`;
  }
}

function oneModel(url: string): string {
  return `
upstreams:
  simulator: { kind: openai, base_url: "${url}" }
models:
  embed-text-v2:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: simulator, model: simulated-embedding }]
`;
}

/** The status of the list of models, which costs no call of the plan. */
async function statusOf(url: string, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.text();
  return response.status;
}

/** Each call to the next gateway; a failed one is not sent again, so that tests see the failure. */
function proxyConfig(port: number, servers: readonly string[]): string {
  const user = process.getuid?.() === 0 ? "user root;\n" : "";
  return `${user}daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid nginx.pid;
events { worker_connections 16000; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  client_max_body_size 16m;
  upstream gateways {
${servers.map((server) => `    server ${server} max_fails=0;`).join("\n")}
    keepalive 1024;
  }
  server {
    listen 127.0.0.1:${port} backlog=8192;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_next_upstream off;
    proxy_read_timeout 300s;
    location / {
      proxy_pass http://gateways;
      proxy_buffering off;
    }
  }
}
`;
}
