import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, untilReachable } from "../../bench/stand/reachable.ts";
import { startChild, type Child } from "../../bench/stand/child.ts";
import {
  type Simulator,
  type SimulatorOptions,
  startSimulator,
} from "../../simulator/simulator.ts";
import {
  postgresPrograms,
  startPostgres,
  type PostgresServer,
} from "../support/postgres-server.ts";
import { testWhere } from "../support/requirement.ts";
import {
  childrenOf,
  type FinishedCommand,
  runSluice,
  sluiceProgram,
  startServing,
  type ServingProcess,
} from "../support/sluice-process.ts";
import { startValkey, valkeyProgram, type ValkeyServer } from "../support/valkey-server.ts";

export interface StackOptions {
  /** Default: 3. */
  readonly machines?: number;
  /** Default: 2. */
  readonly processes?: number;
  /** Default: shared in Valkey, whose decisions may take 5 s, as the machine may be busy. */
  readonly limits?: string;
  /** How long decisions wait for Valkey. Default: 5s. */
  readonly timeout?: string;
  /** The command of another version of Sluice, for each gateway by its index. */
  readonly program?: (index: number) => readonly string[];
  readonly simulator?: SimulatorOptions;
  /** Called with the URL of the database before a gateway uses it. */
  readonly prepare?: (storageUrl: string) => Promise<void>;
  /** Further settings of the configuration, as YAML. */
  readonly settings?: string;
  /** Pools, models and upstreams, instead of one chat model. */
  readonly models?: (simulator: Simulator) => string;
  /** A further address of this machine on which the servers listen. Default: none. */
  readonly address?: string;
}

/** Where a gateway runs that joins those behind the proxy. */
export interface MachinePlace {
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
export interface Machine {
  readonly configPath: string;
  readonly dataDir: string;
  readonly process: ServingProcess;
}

/** Whether PostgreSQL, Valkey or Redis, and nginx are installed. */
export const canRunMachines =
  postgresPrograms !== undefined && valkeyProgram !== null && Bun.which("nginx") !== null;

/** Runs tests only where PostgreSQL, Valkey or Redis, and nginx are installed. */
export const testWithMachines = testWhere(
  canRunMachines,
  "PostgreSQL, Valkey or Redis, and nginx are not all installed",
);

/**
 * Several gateways with one PostgreSQL and one Valkey server, behind nginx, which sends each call
 * to the next gateway. All are processes of their own; the model provider is simulated.
 */
export class MachineStack implements AsyncDisposable {
  readonly simulator: Simulator;
  readonly postgres: PostgresServer;
  readonly valkey: ValkeyServer;
  readonly #folder: string;
  readonly #options: StackOptions;
  readonly #machines: Machine[] = [];
  /** The numbers of those that nginx sends no calls to. */
  readonly #resting = new Set<number>();
  #storageUrl = "";
  readonly #proxyPort = freePort();
  #proxy: Child | undefined;
  /** Where callers send their calls. */
  url = "";

  private constructor(
    options: StackOptions,
    servers: Pick<MachineStack, "simulator" | "postgres" | "valkey">,
  ) {
    this.#options = options;
    this.#folder = mkdtempSync(join(tmpdir(), "sluice-machines-"));
    this.simulator = servers.simulator;
    this.postgres = servers.postgres;
    this.valkey = servers.valkey;
  }

  static async create(options: StackOptions = {}): Promise<MachineStack> {
    const simulator = startSimulator(options.simulator);
    const { address } = options;
    const open = ["--bind", "127.0.0.1", address ?? "", "--protected-mode", "no"];
    const [postgres, valkey] = await Promise.all([
      startPostgres({ address }),
      startValkey(address === undefined ? [] : open),
    ]);
    const stack = new MachineStack(options, { simulator, postgres, valkey });
    try {
      stack.#storageUrl = await postgres.createDatabase();
      await options.prepare?.(stack.#storageUrl);
      const { machines = 3 } = options;
      for (let number = 0; number < machines; number += 1) await stack.start(number);
      await stack.#startProxy();
      return stack;
    } catch (error) {
      await stack[Symbol.asyncDispose]();
      throw error;
    }
  }

  get machines(): readonly Machine[] {
    return this.#machines;
  }

  get storageUrl(): string {
    return this.#storageUrl;
  }

  /** Starts one more gateway, which the proxy does not know. */
  join(place: MachinePlace): Promise<Machine> {
    return this.start(this.#machines.length, place);
  }

  /** Starts a gateway, or starts it again. nginx sends it calls from its next `balance` on. */
  async start(index: number, place: MachinePlace = this.#here): Promise<Machine> {
    const dataDir = join(this.#folder, `data-${index + 1}`);
    const configPath = join(this.#folder, `sluice-${index + 1}.yaml`);
    writeFileSync(configPath, this.#configText(dataDir, place));
    const program = [...place.prefix, ...(this.#programOf(index) ?? sluiceProgram)];
    const process = await startServing(["--config", configPath], {}, program);
    const machine = { configPath, dataDir, process };
    this.#machines[index] = machine;
    return machine;
  }

  /** Takes a gateway out of nginx. Resolves when the calls that went through it have ended. */
  async rest(index: number): Promise<void> {
    this.#resting.add(index);
    await this.balance();
  }

  /** Sends calls to a gateway again. */
  async resume(index: number): Promise<void> {
    this.#resting.delete(index);
    await this.balance();
  }

  /**
   * nginx reads again where the gateways are. Resolves when those of its processes have ended that
   * send calls to where they were.
   */
  async balance(): Promise<void> {
    const master = this.#proxy?.pid ?? 0;
    const before = childrenOf(master);
    this.#writeProxyConfig();
    process.kill(master, "SIGHUP");
    while (childrenOf(master).some((child) => before.includes(child))) await Bun.sleep(20);
  }

  /** The output of a command, as an operator of the first gateway runs it. */
  async sluice(...command: readonly string[]): Promise<string> {
    const { exitCode, output, errors } = await this.sluiceAt(0, ...command);
    if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${errors}`);
    return output;
  }

  /** The same for any gateway, with the version that is installed there. */
  sluiceAt(index: number, ...command: readonly string[]): Promise<FinishedCommand> {
    const options = [...command, "--config", this.machine(index).configPath];
    return runSluice(options, {}, this.#programOf(index));
  }

  machine(index: number): Machine {
    const machine = this.#machines[index];
    if (machine === undefined) throw new Error(`there is no gateway ${index}`);
    return machine;
  }

  /** A key with limits of its own, once every gateway accepts it. */
  async createKey(account: string, limits: readonly string[]): Promise<string> {
    await this.sluice("accounts", "create", account);
    const place = ["--account", account, "--environment", "production"];
    await this.sluice("applications", "create", "search", ...place);
    const issued = ["keys", "create", "--application", "search", ...place, ...limits];
    const key = (await this.sluice(...issued)).trim();
    for (const { process } of this.#machines) {
      // Each of these calls reaches one of the processes by chance.
      for (let accepted = 0; accepted < 16;) {
        if ((await statusOf(process.dataUrl, key)) !== 401) accepted += 1;
        else {
          accepted = 0;
          await Bun.sleep(50);
        }
      }
    }
    return key;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#proxy?.[Symbol.asyncDispose]();
    await Promise.all(this.#machines.map(({ process }) => process[Symbol.asyncDispose]()));
    await this.postgres[Symbol.asyncDispose]();
    await this.valkey[Symbol.asyncDispose]();
    await this.simulator[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #programOf(index: number): readonly string[] | undefined {
    return this.#options.program?.(index);
  }

  get #here(): MachinePlace {
    const address = "127.0.0.1";
    return { address, prefix: [], serversAt: address, upstreamUrl: this.simulator.url };
  }

  #configText(dataDir: string, { address, serversAt, upstreamUrl }: MachinePlace): string {
    const { processes = 2, settings = "", models, timeout = "5s" } = this.#options;
    const seen = (url: string): string => url.replace("127.0.0.1", serversAt);
    const { limits = `{ store: "${seen(this.valkey.url)}", timeout: ${timeout} }` } = this.#options;
    return `
listen: { data: "${address}:0", admin: "127.0.0.1:0" }
storage: { url: "${seen(this.#storageUrl)}" }
limits: ${limits}
data_dir: ${dataDir}
processes: ${processes}
auth: { peppers: ["a pepper for tests that is long enough"] }
# The machine of the tests may be busy.
overload: { loop_delay: 10s }
${settings}
environments:
  - { name: production, hosts: ["*"], models: ["*"] }
${models === undefined ? oneModel(upstreamUrl) : models(this.simulator)}
`;
  }

  async #startProxy(): Promise<void> {
    mkdirSync(this.#proxyFolder);
    this.#writeProxyConfig();
    const logPath = join(this.#proxyFolder, "output.log");
    const errorPath = join(this.#proxyFolder, "error.log");
    const places = ["-p", `${this.#proxyFolder}/`, "-e", errorPath, "-c", this.#proxyConfigPath];
    this.#proxy = startChild({ command: ["nginx", ...places], logPath });
    await untilReachable(this.#proxyPort, this.#proxy);
    this.url = `http://127.0.0.1:${this.#proxyPort}`;
  }

  get #proxyFolder(): string {
    return join(this.#folder, "nginx");
  }

  get #proxyConfigPath(): string {
    return join(this.#proxyFolder, "nginx.conf");
  }

  #writeProxyConfig(): void {
    const servers = this.#machines
      .filter((_, index) => !this.#resting.has(index))
      .map(({ process }) => new URL(process.dataUrl).host);
    writeFileSync(this.#proxyConfigPath, proxyConfig(this.#proxyPort, servers));
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

/** The status of the list of models, which costs no call of the plan, on a connection of its own. */
export async function statusOf(url: string, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/v1/models`, { headers, keepalive: false });
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
