import { afterAll, beforeAll, describe } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/domain/clock.ts";
import { parseValkeyUrl } from "../../src/domain/addresses/valkey-address.ts";
import {
  connectValkey,
  type ValkeyConnection,
  type ValkeyConnectionOptions,
} from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";
import { quietPort } from "./free-port.ts";
import { isComplete } from "./requirement.ts";

/** A Valkey or Redis server on a loopback port, gone with its data when it is disposed of. */
export interface ValkeyServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Freezes the server, or lets it go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Ends the server as a crash would. Only what `SAVE` has written is left when it starts again. */
  kill(): Promise<void>;
  /** `settings`: in place of those of its first start. */
  start(settings?: readonly string[]): Promise<void>;
  /** Runs one command on a connection of its own. */
  command(name: string, ...parameters: string[]): Promise<unknown>;
}

/** Null where no server is installed. */
export const valkeyProgram = Bun.which("valkey-server") ?? Bun.which("redis-server");

/** Describes what needs a server; skipped where none is installed, except in a complete run. */
export function describeWithValkey(body: () => void): void {
  if (valkeyProgram !== null || isComplete) describe("with a Valkey server", body);
  else {
    process.stdout.write("skipped: neither valkey-server nor redis-server is installed\n");
    describe.skip("with a Valkey server", body);
  }
}

/** `settings`: of the server's configuration, such as `["--requirepass", "secret"]`. */
export async function startValkey(settings: readonly string[] = []): Promise<ValkeyServer> {
  if (valkeyProgram === null) throw new Error("no Valkey or Redis server is installed");
  const server = new LocalServer(valkeyProgram, settings);
  await server.start();
  return server;
}

/** A connection as a worker has it. The time-out is generous: the machine may be busy. */
export async function connectTo(
  { url }: Pick<ValkeyServer, "url">,
  options: Partial<Pick<ValkeyConnectionOptions, "timeoutMs" | "scripts" | "authorities">> = {},
): Promise<ValkeyConnection> {
  const address = parseValkeyUrl(url);
  if (address === undefined) throw new Error(`${url} is no address`);
  const connection = connectValkey({
    address,
    timeoutMs: 60_000,
    clock: systemClock,
    scripts: [],
    ...options,
  });
  await connection.open();
  return connection;
}

/** A server for the tests of one block, with a connection to it. */
export function valkeyOfTests(): {
  readonly server: ValkeyServer;
  readonly connection: ValkeyConnection;
} {
  const own: { server?: ValkeyServer; connection?: ValkeyConnection } = {};
  beforeAll(async () => {
    own.server = await startValkey();
    own.connection = await connectTo(own.server);
  });
  afterAll(async () => {
    own.connection?.close();
    await own.server?.[Symbol.asyncDispose]();
  });
  const started = <Part>(part: Part | undefined): Part => {
    if (part === undefined) throw new Error("the server starts before the first test");
    return part;
  };
  return {
    get server() {
      return started(own.server);
    },
    get connection() {
      return started(own.connection);
    },
  };
}

class LocalServer implements ValkeyServer {
  readonly port = quietPort();
  readonly url = `valkey://127.0.0.1:${this.port}`;
  readonly #program: string;
  readonly #settings: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), "sluice-valkey-"));
  #server: Bun.Subprocess | undefined;

  constructor(path: string, settings: readonly string[]) {
    this.#program = path;
    this.#settings = settings;
  }

  async start(settings = this.#settings): Promise<void> {
    const listen = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#folder];
    const command = [this.#program, ...listen, "--save", "", "--appendonly", "no"];
    const output = { stdout: "ignore", stderr: "ignore" } as const;
    this.#server = Bun.spawn([...command, ...settings], output);
    while (!(await this.#answers())) await Bun.sleep(20);
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#server?.kill(name);
  }

  async kill(): Promise<void> {
    this.#server?.kill("SIGKILL");
    await this.#server?.exited;
  }

  async command(name: string, ...parameters: string[]): Promise<unknown> {
    const client = new Bun.RedisClient(this.url, { autoReconnect: false });
    try {
      await client.connect();
      return await client.send(name, parameters);
    } finally {
      client.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** A server with a password or certificates also answers, with a refusal. */
  async #answers(): Promise<boolean> {
    if (this.#server?.exitCode !== null) throw new Error("the server ended at its start");
    try {
      using _socket = await Bun.connect({
        hostname: "127.0.0.1",
        port: this.port,
        socket: { data: () => undefined },
      }).then((socket) => ({ [Symbol.dispose]: () => void socket.end() }));
      return true;
    } catch {
      return false;
    }
  }
}
