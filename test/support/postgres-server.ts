import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { quietPort } from "./free-port.ts";

/** A PostgreSQL server of its own on a loopback port, gone with its data when it is disposed of. */
export interface PostgresServer extends AsyncDisposable {
  /** Creates an empty database; returns its URL. */
  createDatabase(): Promise<string>;
  /** Freezes all processes of the server, or lets them go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Ends the server as a crash would; `start` recovers its data. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

const debianRoot = "/usr/lib/postgresql";

/** Undefined where no server is installed. */
export const postgresPrograms = findPrograms();

export interface PostgresOptions {
  /** Writes reach the disk before they are acknowledged, as in production. Default: false. */
  readonly isDurable?: boolean;
  /** A further address on which the server listens; anybody there may use it. */
  readonly address?: string | undefined;
  /** The lines of `pg_hba.conf`. Default: anybody from this machine. The database `postgres` must be usable. */
  readonly access?: string | undefined;
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  if (postgresPrograms === undefined) throw new Error("PostgreSQL is not installed");
  const folder = mkdtempSync(join(tmpdir(), "sluice-postgres-"));
  const server = new LocalServer(folder, postgresPrograms, options);
  await server.create();
  await server.start();
  return server;
}

class LocalServer implements PostgresServer {
  readonly #folder: string;
  readonly #programs: string;
  readonly #port = quietPort();
  readonly #options: PostgresOptions;
  #server: Bun.Subprocess | undefined;
  #databases = 0;

  constructor(folder: string, programs: string, options: PostgresOptions) {
    this.#folder = folder;
    this.#programs = programs;
    this.#options = options;
  }

  async create(): Promise<void> {
    if (isRoot) await finish(["chown", account, this.#folder]);
    const options = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"];
    await finish(this.#asUser("initdb", ["-U", "sluice", "-D", this.#data, ...options]));
    const { address, access } = this.#options;
    const path = join(this.#data, "pg_hba.conf");
    if (access !== undefined) writeFileSync(path, access);
    if (address !== undefined) appendFileSync(path, "host all all samenet trust\n");
  }

  async start(): Promise<void> {
    const { isDurable = false, address } = this.#options;
    const fsync = `fsync=${isDurable ? "on" : "off"}`;
    const addresses = ["127.0.0.1", address].filter((each) => each !== undefined).join(",");
    const settings = [`listen_addresses=${addresses}`, "unix_socket_directories=", fsync];
    const command = this.#asUser("postgres", [
      "-D",
      this.#data,
      "-p",
      String(this.#port),
      ...settings.flatMap((setting) => ["-c", setting]),
    ]);
    this.#server = Bun.spawn(command, { stdout: "ignore", stderr: "ignore" });
    while (!(await this.#answers())) await Bun.sleep(20);
  }

  async createDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `test_${this.#databases}`;
    await this.#run(`CREATE DATABASE ${name}`);
    return this.#urlOf(name);
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    if (this.#server === undefined) throw new Error("the server is not started");
    const { pid } = this.#server;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    for (const child of children.split(" ")) process.kill(Number(child), name);
    process.kill(pid, name);
  }

  async kill(): Promise<void> {
    this.#server?.kill("SIGQUIT");
    await this.#server?.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  #urlOf(database: string): string {
    return `postgres://sluice@127.0.0.1:${this.#port}/${database}`;
  }

  /** The server refuses to run as root. */
  #asUser(program: string, options: readonly string[]): string[] {
    const path = join(this.#programs, program);
    const prefix = ["setpriv", `--reuid=${account}`, `--regid=${account}`, "--clear-groups"];
    return isRoot ? [...prefix, path, ...options] : [path, ...options];
  }

  async #run(sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.#urlOf("postgres") });
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  }

  async #answers(): Promise<boolean> {
    if (this.#server?.exitCode !== null) throw new Error("PostgreSQL ended at its start");
    try {
      await this.#run("SELECT 1");
      return true;
    } catch {
      return false;
    }
  }
}

/** Debian's package creates this user. */
const account = "postgres";
const isRoot = userInfo().uid === 0;

async function finish(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  const errors = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed: ${errors}`);
}

/** Debian keeps the programs of each version in a folder of its own, outside the path. */
function findPrograms(): string | undefined {
  const inPath = Bun.which("initdb");
  if (inPath !== null) return join(inPath, "..");
  try {
    const newest = readdirSync(debianRoot)
      .toSorted((one, other) => Number(other) - Number(one))
      .find((version) => Bun.file(join(debianRoot, version, "bin/initdb")).size > 0);
    return newest === undefined ? undefined : join(debianRoot, newest, "bin");
  } catch {
    return undefined;
  }
}
